package groupreplication_test

import (
	"context"
	"database/sql"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// disturbed says that a member was stopped or killed since the group was whole. A member may report
// that all are there when the others are about to expel it, and so may the others.
var disturbed atomic.Bool

const (
	// settled is how long a disturbed group must be whole before the tests believe it.
	settled = 2 * time.Second
	// alone is how long a member joins by itself, after it was started or was expelled. One that is
	// told to meanwhile joins, leaves and joins within seconds, and is then unreachable to a single
	// other, for ever: that was one run in a few beside other work.
	alone = 20 * time.Second
	// stuck is how long a group may be anything but whole.
	stuck = 2 * alone
)

// mending is held by the test that looks after the group, which tests beside it share.
var mending sync.Mutex

// whole waits until every member reports all members. A member that has given up is told to join
// again; by itself it would in five minutes. A group that is not whole after a while will not be by
// itself: it may have lost its majority, or have a member that a single other cannot reach, which
// no member expels. It is made anew.
func (r *rig) whole() {
	r.Helper()
	mending.Lock()
	defer mending.Unlock()
	var since time.Time
	patient := time.Now()
	r.down = make([]time.Time, members)
	r.eventually("the group is whole", func() bool {
		switch {
		case !r.allOnline():
			since = time.Time{}
			if time.Since(patient) > stuck {
				r.makeAnew()
				patient = time.Now()
			}
			return false
		case since.IsZero():
			since = time.Now()
		}
		return !disturbed.Load() || time.Since(since) > settled
	})
	disturbed.Store(false)
}

// allOnline asks every member once.
func (r *rig) allOnline() bool {
	states, primaries := make([]string, members), 0
	for i := range r.dbs {
		var online, primary int
		r.ask(i, []any{&states[i], &online, &primary},
			`SELECT COALESCE(MAX(IF(member_id = @@server_uuid, member_state, '')), ''),
				SUM(member_state = 'ONLINE'),
				COALESCE(SUM(member_role = 'PRIMARY' AND member_id = @@server_uuid), 0)
				FROM performance_schema.replication_group_members`)
		if online != members && states[i] == "ONLINE" {
			states[i] = "WAITING"
		}
		primaries += primary
	}
	if primaries == 1 {
		r.rejoin(states)
	}
	return primaries == 1 &&
		!slices.ContainsFunc(states, func(s string) bool { return s != "ONLINE" })
}

// ask leaves answers as they are where the member does not answer.
func (r *rig) ask(member int, answers []any, query string, args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.dbs[member].QueryRowContext(ctx, query, args...).Scan(answers...)
}

// rejoin tells the members to join that have been out of the group for a while.
func (r *rig) rejoin(states []string) {
	for i, state := range states {
		switch {
		case state != "ERROR" && state != "OFFLINE":
			r.down[i] = time.Time{}
		case r.down[i].IsZero():
			r.down[i] = time.Now()
		case time.Since(r.down[i]) > alone:
			err := r.patiently(i, `STOP GROUP_REPLICATION`)
			if err == nil {
				err = r.patiently(i, `START GROUP_REPLICATION`)
			}
			r.Logf("member %d was %s, and is told to join again: %v", i+1, state, err)
			r.down[i] = time.Time{}
		}
	}
}

// patiently bounds what can hang in a group without a majority.
func (r *rig) patiently(member int, query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), stuck)
	defer cancel()
	_, err := r.dbs[member].ExecContext(ctx, query)
	return err
}

// makeAnew ends the group and has the member that has all the transactions begin another. Any other
// would have the rest refuse to join, for what they have and it has not. A member that does
// not leave is killed, and left for the next time.
func (r *rig) makeAnew() {
	r.Helper()
	r.Logf("the group is not whole after %v, and is made anew", stuck)
	for i := range r.dbs {
		if err := r.patiently(i, `STOP GROUP_REPLICATION`); err != nil {
			r.Logf("member %d does not leave the group, and is started anew: %v", i+1, err)
			r.signal(i, syscall.SIGKILL)
			return
		}
	}
	first := r.mostAdvanced()
	if first < 0 {
		return
	}
	for _, q := range []string{
		`SET GLOBAL group_replication_bootstrap_group = ON`, `START GROUP_REPLICATION`,
		`SET GLOBAL group_replication_bootstrap_group = OFF`,
	} {
		if err := r.patiently(first, q); err != nil {
			r.Logf("member %d: %s: %v", first+1, q, err)
		}
	}
	for i := 1; i < members; i++ { // one by one: two at once can find each other
		if err := r.patiently((first+i)%members, `START GROUP_REPLICATION`); err != nil {
			r.Logf("member %d does not join: %v", (first+i)%members+1, err)
		}
	}
}

// mostAdvanced returns the member that has every transaction of all, or -1 if one has not answered.
func (r *rig) mostAdvanced() int {
	r.Helper()
	sets := make([]sql.NullString, members)
	for i := range r.dbs {
		r.ask(i, []any{&sets[i]}, `SELECT @@GLOBAL.gtid_executed`)
		if !sets[i].Valid {
			return -1
		}
	}
	for i := range r.dbs {
		var all bool
		r.ask(i, []any{&all}, `SELECT GTID_SUBSET(?, all_of) AND GTID_SUBSET(?, all_of)
			FROM (SELECT @@GLOBAL.gtid_executed AS all_of) mine`,
			sets[(i+1)%members].String, sets[(i+2)%members].String)
		if all {
			return i
		}
	}
	r.Fatalf("each member has transactions that another has not: %v", sets)
	return -1
}

// tellWhy has a test that fails show what the members wrote meanwhile: their log is gone with them.
func tellWhy(tb testing.TB) {
	log := os.Getenv("ROWLOCK_TEST_GROUP_LOG")
	info, err := os.Stat(log)
	if err != nil {
		return // servers of the user's own
	}
	tb.Cleanup(func() {
		if !tb.Failed() {
			return
		}
		text, _ := os.ReadFile(log)
		var lines []string
		for line := range strings.Lines(string(text[min(info.Size(), int64(len(text))):])) {
			if strings.Contains(line, "group_replication reported") &&
				!strings.Contains(line, "Old incarnation") {
				lines = append(lines, line)
			}
		}
		tb.Logf("the members wrote:\n%s", strings.Join(lines[max(0, len(lines)-200):], ""))
	})
}
