//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/fight"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// found is what a round has shown.
type found struct {
	database, fault string
	seed            uint64
	blows           map[string]int
	struck          int
	totals          fight.Totals
	report          *check.Report
	overlaps        []time.Duration
	lateLoss        time.Duration
	longestWait     time.Duration
	recovery        time.Duration // from the end of the fault to the first grant
	stale           int           // locks granted when their lease was over
	sessions        int
	rows            map[string]int
	failovers       []standing
}

// judge checks what the workers were told, and looks at what they have left behind.
func (r *round) judge(ctx context.Context) (*found, error) {
	f := &found{
		database: r.server.name, fault: r.fault.name, seed: r.seed, blows: r.blows.counts, struck: r.blows.total,
		totals: fight.Tally(r.events), overlaps: check.Overlaps(r.events),
	}
	in, err := r.input(ctx)
	if err != nil {
		return nil, err
	}
	f.report = check.All(in)
	f.lateLoss = check.Losses(new(check.Report), r.events)
	f.stale = check.Stale(r.events)
	f.failovers = r.standings()
	f.longestWait, f.recovery = r.waits()
	if f.recovery < 0 && r.plan.Phases[0].To-r.healed > int64(enough) && r.probed < enough/4 {
		f.violation("no grant after the fault", "")
	}
	if r.blows.total == 0 {
		f.violation("nothing was done", "the fault has not struck")
	}
	if r.cluster != nil && f.totals.Moves == 0 {
		f.violation("nothing was done", "no key was moved")
	}
	f.sessions = r.sessionsLeft(ctx)
	if f.sessions > 0 {
		f.violation("connections left behind", strconv.Itoa(f.sessions))
	}
	f.rows, err = r.rowsLeft(ctx)
	return f, err
}

func (f *found) violation(kind check.Kind, text string) {
	f.report.Violations = append(f.report.Violations, check.Case{Kind: kind, Text: text})
}

func (r *round) input(ctx context.Context) (in *check.Input, err error) {
	in = &check.Input{
		Events: r.events, Clock: r.fault.clock, Killed: r.fault.clock, Settled: !r.fault.clock,
		Phases: []string{"chaos"}, Healthy: make(map[int]bool), Undone: r.undone(),
	}
	if in.Journal, in.Counters, err = r.database.Read(ctx, r.server.db); err != nil {
		return nil, err
	}
	if in.Effects, err = r.database.Effects(ctx, r.server.db); err != nil {
		return nil, err
	}
	in.Left, err = r.heldAtLast(ctx)
	return in, err
}

// enough is what workers need to take a lock when all is well again, if one client can do so in a
// quarter of it. A server that recovers slowly can leave less, and a machine that is overloaded
// proves nothing.
const enough = 2 * time.Second

// heldAtLast are the keys that are held for longer than a lease after the last worker has ended.
// What a process did not live to unlock, or was never told of, expires. So does a lease whose
// release a crash or a failover has undone.
func (r *round) heldAtLast(ctx context.Context) (rows []history.Row, err error) {
	for end := fight.Now() + int64(ttl+time.Second); ; fight.Sleep(ctx, 100*time.Millisecond) {
		rows, err = r.database.Held(ctx, r.server.db)
		if err != nil || len(rows) == 0 || fight.Now() > end {
			return rows, err
		}
	}
}

// waits are the longest wait for a lock that was granted, and how long after the fault the first
// was; -1 if none was.
func (r *round) waits() (longest, recovery time.Duration) {
	recovery = -1
	for i := range r.events {
		e := &r.events[i]
		if e.Result != history.OK || e.Kind != history.Grant && e.Kind != history.Shared {
			continue
		}
		longest = max(longest, time.Duration(e.Told-e.Sent))
		if after := time.Duration(e.Told - r.healed); after >= 0 && (recovery < 0 || after < recovery) {
			recovery = after
		}
	}
	return longest, recovery
}

// sessionsFor is how long a server may take to notice that its clients are gone.
const sessionsFor = 15 * time.Second

func (r *round) sessionsLeft(ctx context.Context) (n int) {
	if r.bouncer != nil {
		r.bouncer.kill() // which keeps its own
	}
	for end := fight.Now() + int64(sessionsFor); ; fight.Sleep(ctx, 100*time.Millisecond) {
		n, _ = strconv.Atoi(r.server.ask(ctx, r.server.sessions))
		if n == 0 || fight.Now() > end {
			return n
		}
	}
}

// rowsLeft counts the rows of each of rowlock's tables.
func (r *round) rowsLeft(ctx context.Context) (map[string]int, error) {
	rows, err := r.server.db.QueryContext(ctx, fmt.Sprintf(`SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%srowlock%%'`, r.database.Prefix))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	counts := make(map[string]int)
	for _, name := range names {
		counts[strings.TrimPrefix(name, r.database.Prefix)], err = strconv.Atoi(r.server.ask(ctx, `SELECT count(*) FROM `+name))
		if err != nil {
			return nil, err
		}
	}
	return counts, rows.Err()
}
