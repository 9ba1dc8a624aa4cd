package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// oldest are the versions from which on rowlock is tested.
var oldest = map[string][3]int{
	"postgres": {13, 0, 0}, "mysql": {8, 0, 19}, "mariadb": {10, 6, 0}, "sqlite": {3, 42, 0},
}

func server(_ context.Context, x *examiner) (f Finding, err error) {
	f.saw("version", x.product, "the server")
	kind := x.d.Name()
	if x.mariaDB {
		kind = "mariadb"
	}
	want := oldest[kind]
	if have := versionOf(x.product); have != [3]int{} && slices.Compare(have[:], want[:]) < 0 {
		f.raise(Warning, fmt.Sprintf("%s is older than rowlock is tested with", x.product),
			fmt.Sprintf("upgrade to %d.%d.%d or later", want[0], want[1], want[2]))
	}
	f.fine("a version that rowlock is tested with")
	return f, nil
}

// versionOf finds the first number: "PostgreSQL 15.18", "MariaDB 5.5.5-10.11.19-MariaDB".
func versionOf(product string) (v [3]int) {
	product = strings.Replace(product, "5.5.5-", "", 1) // what MariaDB tells old clients
	for word := range strings.FieldsFuncSeq(product, func(r rune) bool {
		return r != '.' && (r < '0' || r > '9')
	}) {
		if word[0] == '.' {
			continue
		}
		for i, part := range strings.SplitN(word, ".", 3) {
			v[i], _ = strconv.Atoi(strings.Trim(part, "."))
		}
		return v
	}
	return v
}

// readOnly finds servers and users that take no writes.
func readOnly(ctx context.Context, x *examiner) (f Finding, err error) {
	standby, err := x.rows(ctx, "standby")
	if err != nil {
		return f, err
	}
	for _, r := range standby {
		f.saw("pg_is_in_recovery()", r[0], "the server")
		if r[0] == "true" {
			f.raise(Critical, "this server is a standby: it grants no locks, and what it shows is late",
				"connect to the primary: target_session_attrs=read-write in the DSN")
		}
	}
	x.readOnlySettings(&f)
	f.fine("the server takes writes")
	return f, nil
}

func (x *examiner) readOnlySettings(f *Finding) {
	for _, name := range []string{
		"default_transaction_read_only", "super_read_only", "read_only", "innodb_read_only", "query_only",
		"transaction_read_only", "tx_read_only",
	} {
		for _, s := range x.settings(name) {
			f.saw(s.where(), s.value, s.from)
			switch {
			case !on(strings.ToUpper(s.value)):
			case name == "default_transaction_read_only":
				f.raise(Critical, s.where()+" is on: Open refuses its sessions", x.set(s, "off"))
			case name == "transaction_read_only", name == "tx_read_only":
				f.raise(Critical, name+" is on: every fence fails with error 1792, and so does a migration", x.set(s, "OFF"))
			case name == "query_only":
				f.raise(Critical, "query_only is on: the pool takes no writes",
					"leave _pragma=query_only out of the DSN")
			default:
				f.raise(Critical, name+" is "+s.value+", as on a replica: it grants no locks, "+
					"and what it shows is late", "connect to the primary")
			}
		}
	}
}

// topology finds clusters in which several servers take writes.
func topology(_ context.Context, x *examiner) (f Finding, err error) {
	const certified = "row locks are held on one server only, and other servers certify a transaction " +
		"when it commits: two can take a key at once, a fence does not keep a writer on another server " +
		"waiting, and a COMMIT can fail with error 1213. "
	wsrep := x.first("wsrep_on")
	group, single := x.first("group_replication_group_name"),
		x.first("group_replication_single_primary_mode")
	for _, s := range []setting{wsrep, group, single} {
		if s.name != "" {
			f.saw(s.name, s.value, s.from)
		}
	}
	if len(f.Evidence) == 0 {
		f.saw("wsrep_on, group_replication_group_name", "unknown to this server", "SHOW VARIABLES")
	}
	if on(wsrep.value) {
		f.raise(Critical, "this is a node of a Galera cluster: "+certified+
			"Galera can also lose a committed change and show a stale row when it is healthy",
			"use a server that replicates from one primary; Open refuses this one")
	}
	if group.value != "" && !on(single.value) {
		f.raise(Critical, "this is a group with several primaries: "+certified+
			"Its members must have one primary",
			"SELECT group_replication_switch_to_single_primary_mode();")
	}
	f.fine("one server takes writes")
	return f, nil
}
