package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"
)

// outage is how long a server should wait for its replica rather than acknowledge alone.
const outage = time.Hour

// semiSync finds settings with which a server acknowledges commits that no replica has, although
// semi-synchronous replication is on. It says nothing then, to no client.
func semiSync(ctx context.Context, x *examiner) (f Finding, err error) {
	enabled := x.semi("enabled", "enabled")
	if !on(enabled.value) {
		f.saw(cmp.Or(enabled.name, "rpl_semi_sync_source_enabled"), cmp.Or(enabled.value, "unknown to this server"),
			"SHOW VARIABLES")
		f.fine("semi-synchronous replication is off: see the check replication")
		return f, nil
	}
	status, err := x.status(ctx)
	if err != nil {
		return f, err
	}
	x.fallsBack(&f)
	x.fellBack(&f, status)
	f.fine("commits wait for a replica, also when none answers")
	return f, nil
}

// semi returns a setting of semi-synchronous replication, which has two vocabularies.
func (x *examiner) semi(source, master string) setting {
	return x.first("rpl_semi_sync_source_"+source, "rpl_semi_sync_master_"+master)
}

// semiStatus returns a counter of semi-synchronous replication; "" if the server has none.
func semiStatus(status map[string]string, name string) string {
	return cmp.Or(status["rpl_semi_sync_source_"+name], status["rpl_semi_sync_master_"+name])
}

// fallsBack judges the settings that let the server acknowledge alone.
func (x *examiner) fallsBack(f *Finding) {
	wait := x.semi("wait_no_replica", "wait_no_slave")
	f.saw(wait.name, wait.value, wait.from)
	if !on(wait.value) {
		f.raise(Warning, wait.name+" is OFF: once too few replicas are connected, commits wait for none; "+
			forgets, x.set(wait, "ON"))
	}
	timeout := x.semi("timeout", "timeout")
	f.saw(timeout.name, timeout.value+" ms", timeout.from)
	if ms, err := strconv.ParseUint(timeout.value, 10, 64); err == nil && ms < uint64(outage.Milliseconds()) {
		f.raise(Warning, fmt.Sprintf("%s is %s ms: a commit that has waited for so long is acknowledged "+
			"alone, and so are all after it until the replica is back; %s", timeout.name, timeout.value, forgets),
			x.set(timeout, "86400000"))
	}
}

// fellBack judges what has happened already.
func (x *examiner) fellBack(f *Finding, status map[string]string) {
	of := func(name string) string { return semiStatus(status, name) }
	const from = "SHOW GLOBAL STATUS"
	needs := x.semi("wait_for_replica_count", "wait_for_slave_count")
	clients, _ := strconv.Atoi(of("clients"))
	wanted, _ := strconv.Atoi(needs.value)
	f.saw("semi-synchronous replicas", clients, from)
	f.saw("Rpl_semi_sync_source_status", of("status"), from)
	f.saw("Rpl_semi_sync_source_no_tx", of("no_tx"), from)
	switch {
	case !on(of("status")):
		f.raise(Warning, "the server has stopped waiting for its replicas: commits are asynchronous now; "+
			forgets, "see why the replica lags, or start it")
	case clients < max(1, wanted):
		f.raise(Warning, fmt.Sprintf("%d of %d required replicas are connected: each commit waits, until the "+
			"timeout; ", clients, max(1, wanted))+forgets, "start the replica")
	case of("no_tx") != "0" && of("no_tx") != "":
		f.raise(Info, of("no_tx")+" commits since the server was started were acknowledged alone")
	}
}
