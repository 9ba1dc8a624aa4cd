package doctor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

func TestRowsThatNoReaperRemovesAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		c := s.Client()
		s.OK(s.Take(c, "k").Unlock(s.Context()))
		s.wants(doctor.OK, "dead-rows")
		brief := quick("dead-rows")
		brief.Retention = time.Microsecond
		s.Elapse(2 * time.Millisecond)
		judge(t, s.findingWith("dead-rows", brief), doctor.Info, "no client's reaper runs")
		s.deadKeys(10_000)
		judge(t, s.findingWith("dead-rows", brief), doctor.Warning, "were not removed", "Config.Reaper.Off")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock}`)
		judge(t, s.findingWith("dead-rows", brief), doctor.OK)
	})
}

// deadKeys writes rows of free keys in one statement.
func (s scene) deadKeys(n int) {
	s.Helper()
	const some = `INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
		SELECT %s, 1, {now} - {second} - {second}, {now} - {second} FROM n AS a CROSS JOIN n AS b`
	key := map[string]string{
		"pgx": `convert_to('dead/' || a.i || '/' || b.i, 'UTF8')`, "mysql": `CONCAT('dead/', a.i, '/', b.i)`,
		"sqlite": `CAST('dead/' || a.i || '/' || b.i AS BLOB)`,
	}[s.Env.Driver]
	for range n / 10_000 {
		s.Exec(s.Env.DB, fmt.Sprintf(some, key))
	}
}

func TestWhatClientsThatEndedHaveLeftIsFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		c := s.Client(func(c *rowlock.Config) { c.Identity = "web-1/4711/orders" })
		s.Take(c, "gone", rowlock.Note("nightly"), rowlock.TTL(time.Hour))
		s.OK(s.Take(c, "ticked", rowlock.MinHold(time.Hour)).Unlock(s.Context()))
		s.Env.Expire(s, "ticked") // as a scheduler's key between two ticks
		s.wants(doctor.OK, "orphans")
		s.Env.Expire(s, "gone")
		s.wants(doctor.Info, "orphans", `"gone"`, "web-1/4711/orders", "nightly", "1 keys")
		s.Env.Exec(s, `DELETE FROM {rowlock}`)
		s.Exec(s.Env.DB, `INSERT INTO {rowlock_queue} ({key}, waiter, {rank}, ttl, alive_until) VALUES (?, ?, 1, 1, {now} - {second})`,
			[]byte("k"), []byte("0123456789abcdef"))
		s.wants(doctor.OK, "orphans", "without a heartbeat = 1")
		brief := quick("orphans")
		brief.Retention = time.Millisecond
		judge(t, s.findingWith("orphans", brief), doctor.Info, "tickets and registrations")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_queue}`)
		judge(t, s.findingWith("orphans", brief), doctor.OK)
	})
}

// Two calls each hold a key and wait for the other's, and so do two processes. The records are
// those of clients that have stopped since, which would end one of the calls.
func TestCallsThatWaitForEachOtherAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		c := s.Client(func(c *rowlock.Config) { c.TTL = time.Minute })
		a, b := s.Take(c, "a"), s.Take(c, "b")
		s.wants(doctor.OK, "deadlocks")
		s.record(lease.Party{Identity: "web-1/1/x"}, a, "b")
		s.wants(doctor.OK, "deadlocks")
		s.record(lease.Party{Identity: "web-2/2/y"}, b, "a")
		s.wants(doctor.Warning, "deadlocks", "2 calls", `waits for "a"`, `waits for "b"`, "web-1/1/x",
			"LockAll")
		s.OK(a.Unlock(s.Context()))
		s.wants(doctor.OK, "deadlocks")
		c1, c2 := s.Take(c, "c1"), s.Take(c, "c2")
		s.record(lease.Party{}, c1, "c2")
		s.recordChain(lease.Party{}, lease.Caller{
			Holds: []lease.Lease{{Key: "c2", Token: c2.Token()}}, Shares: []string{"c1"},
		})
		s.wants(doctor.Warning, "deadlocks", "2 calls", `waits for "c1"`)
		s.OK(c1.Unlock(s.Context()))
		s.wants(doctor.OK, "deadlocks")
		s.record(lease.Party{Process: true}, s.Take(c, "own"), "own")
		s.wants(doctor.OK, "deadlocks") // another call of the process may hold the key
		p, q := s.Take(c, "p"), s.Take(c, "q")
		s.record(lease.Party{Process: true}, p, "q")
		s.record(lease.Party{Process: true}, q, "p")
		s.wants(doctor.Info, "deadlocks", "2 processes")
	})
}

// record records a call that holds a lock and waits for a key.
func (s scene) record(by lease.Party, holds *rowlock.Lock, wants string) {
	s.Helper()
	s.recordChain(by, lease.Caller{
		Holds: []lease.Lease{{Key: holds.Key(), Token: holds.Token()}}, Wants: []string{wants},
	})
}

func (s scene) recordChain(by lease.Party, c lease.Caller) {
	s.Helper()
	c.ID, c.Waited = lease.NewOwner(), time.Second
	store, _, err := table.Open(s.Context(), s.Env.Pool(s), s.Env.Dialect, table.Options{
		Connections: max(1, s.Env.Dialect.Connections()), Timeout: servertest.Patience,
	})
	s.OK(err)
	defer store.Close()
	var graph lease.Graph = store
	s.OK(graph.Record(s.Context(), by, []lease.Caller{c}, time.Minute))
}
