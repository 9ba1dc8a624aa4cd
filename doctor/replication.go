package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

const forgets = "a failover to it forgets the last grants: until its deadline an old holder works " +
	"beside a new one, and only fences refuse its writes"

var monitor = map[string]string{
	"postgres": "GRANT pg_monitor TO the user;", "mysql": "GRANT PROCESS ON *.* TO the user;",
}

// replication finds replicas that may lack a lock that was granted.
func replication(ctx context.Context, x *examiner) (f Finding, err error) {
	rows, err := x.others(ctx, "replicas")
	if err != nil {
		return f, err
	}
	if x.d.Name() == "mysql" {
		return x.semiSync(ctx, rows)
	}
	names := x.first("synchronous_standby_names")
	f.saw(names.name, strconv.Quote(names.value), names.from)
	var waited, late, hidden int
	for _, r := range rows {
		f.saw(r[0], fmt.Sprintf("sync_state %q, lag %ss", r[1], r[2]), "pg_stat_replication")
		switch r[1] {
		case "sync", "quorum":
			waited++
		case "":
			hidden++
		default:
			late++
		}
	}
	x.judgeReplicas(&f, waited, late, hidden, names)
	return f, nil
}

func (x *examiner) judgeReplicas(f *Finding, waited, late, hidden int, names setting) {
	const cure = "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'; SELECT pg_reload_conf();"
	needed := sqlstore.Standbys(names.value)
	switch {
	case names.value != "" && waited > 0 && waited < needed:
		f.raise(Critical, fmt.Sprintf("commits wait for %d standbys and %d of them are connected: every "+
			"commit waits, and calls end with ErrUnknown", needed, waited), "start the other standbys, or "+
			cure)
	case names.value != "" && waited == 0 && hidden == 0:
		f.raise(Critical, "synchronous_standby_names is set and no such standby is connected: every commit "+
			"waits, and calls end with ErrUnknown", "start the standby, or "+
			"ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf();")
	case hidden > 0:
		f.raise(Info, fmt.Sprintf("%d replicas, and this user may not see whether commits wait for them",
			hidden), monitor["postgres"])
	case late > 0 && waited == 0:
		f.raise(Warning, fmt.Sprintf("%d replicas and none is synchronous: %s", late, forgets), cure)
	case late > 0:
		f.raise(Info, fmt.Sprintf("%d replicas are asynchronous beside %d that are not: fail over to a "+
			"synchronous one only", late, waited))
	}
	for _, s := range x.settings("synchronous_commit") {
		if waited > 0 && s.value == "local" {
			f.raise(Warning, s.where()+" is local, so that commits wait for no replica: "+forgets,
				x.set(s, "on"))
		}
	}
	wait := "one"
	if needed > 1 {
		wait = strconv.Itoa(needed)
	}
	f.fine(fmt.Sprintf("%d replicas, and commits wait for %s", waited, wait))
	if waited == 0 && f.Severity == OK {
		f.Summary = "no replica is connected"
	}
}

// semiSync judges a MySQL or MariaDB by its counters, which every user may read.
func (x *examiner) semiSync(ctx context.Context, rows [][]string) (f Finding, err error) {
	status, err := x.status(ctx)
	if err != nil {
		return f, err
	}
	enabled := x.semi("enabled", "enabled")
	clients := semiStatus(status, "clients")
	if enabled.name != "" {
		f.saw(enabled.name, enabled.value, enabled.from)
		f.saw("semi-synchronous replicas", clients, "SHOW GLOBAL STATUS")
	}
	f.saw("replicas seen", len(rows), "information_schema.PROCESSLIST")
	for _, r := range rows {
		f.saw("replica", r[0], "information_schema.PROCESSLIST")
	}
	see, err := x.maySee(ctx)
	if err != nil {
		return f, err
	}
	acknowledges := on(enabled.value) && clients != "" && clients != "0"
	const cure = "enable semi-synchronous replication with the wait point AFTER_SYNC: " +
		"https://dev.mysql.com/doc/refman/8.4/en/replication-semisync.html"
	switch {
	case len(rows) > 0 && !acknowledges:
		f.raise(Warning, fmt.Sprintf("%d replicas and none is semi-synchronous: %s", len(rows), forgets),
			cure)
	case on(enabled.value) && !acknowledges:
		f.raise(Warning, enabled.name+" is on and no replica acknowledges: commits wait for its timeout, "+
			"and then for none; "+forgets, "start the semi-synchronous replica")
	case !see && on(x.setting("log_bin")):
		f.raise(Info, "the server writes a binary log, and this user may not see whether replicas read it",
			monitor["mysql"])
	}
	f.fine("no replica reads the server's log, or one acknowledges each commit")
	return f, nil
}

func (x *examiner) status(ctx context.Context) (map[string]string, error) {
	rows, err := x.rows(ctx, "status")
	all := make(map[string]string, len(rows))
	for _, r := range rows {
		all[strings.ToLower(r[0])] = r[1]
	}
	return all, err
}

// maySee reports whether a user of MySQL sees the sessions of others.
func (x *examiner) maySee(ctx context.Context) (bool, error) {
	rows, err := x.rows(ctx, "rights")
	for _, r := range rows {
		grant, _, _ := strings.Cut(r[0], " ON *.* ")
		if grant != r[0] && (strings.Contains(grant, "PROCESS") || strings.Contains(grant, "ALL PRIV")) {
			return true, err
		}
	}
	return false, err
}
