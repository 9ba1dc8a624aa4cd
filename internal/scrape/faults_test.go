package scrape

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// fault is a real thing that happens to clients on PostgreSQL, with their pages.
type fault struct {
	*recording
	s *servertest.Scene
}

// faults are what the alerts are about. Each makes the real thing happen after a page of before,
// and says which alerts fire at the second scrape that shows it; for a rule about some time, when
// that has gone by. Any other alert is a false one.
var faults = map[string]func(f *fault){
	"a holder is stopped and goes on":    (*fault).stopped,
	"a holder is killed":                 (*fault).killed,
	"a lock reaches MaxHold":             func(f *fault) { f.limit(rowlock.MaxHold(2 * time.Second)) },
	"a holder is idle":                   func(f *fault) { f.limit(rowlock.MaxIdle(2 * time.Second)) },
	"the database refuses":               (*fault).refused,
	"the database hangs":                 (*fault).vanished,
	"a holder hangs":                     (*fault).stuck,
	"waits are long":                     (*fault).slow,
	"callers wait in a cycle":            (*fault).cycle,
	"a call waits for its own process":   (*fault).suspicion,
	"an operator takes a lock":           (*fault).forced,
	"a lock is forgotten":                (*fault).leak,
	"a row cannot be released":           (*fault).unreleased,
	"an answer is lost with the server":  (*fault).orphan,
	"the server is slow":                 (*fault).busy,
	"another user's transaction is open": (*fault).notEvicted,
	"the server's clock is set":          (*fault).clock,
	"a failover forgets a move":          (*fault).forgotten,
}

// Each alert fires when what it is about happens, on real clients and a real server, by Prometheus'
// own engine over real pages.
func TestEachAlertFiresOnTheRealThing(t *testing.T) {
	program(t, "promtool")
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		var recorded []*recording
		s.Run("faults", func(t *testing.T) {
			for name, happens := range faults {
				r := newRecording(t, name)
				recorded = append(recorded, r)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					r.TB = t
					happens(&fault{r, &servertest.Scene{T: t, Env: s.Env}})
				})
			}
		})
		each(s, recorded)
		judge(s.T, recorded)
	})
}

// each wants a fault for each alert.
func each(s *servertest.Scene, recorded []*recording) {
	s.Helper()
	fires := make(map[string]bool)
	for _, r := range recorded {
		if len(r.checks) == 0 {
			return // -run has left some out
		}
		for _, c := range r.checks {
			for _, sample := range c.Samples {
				fires[sample.Labels] = true
			}
		}
	}
	for _, a := range alerts(s.T) {
		if !fires[fmt.Sprintf("{alertname=%q}", a.Alert)] {
			s.Errorf("no fault is to fire %s", a.Alert)
		}
	}
}

// before takes pages before anything has happened.
func (f *fault) before() {
	f.Helper()
	f.goOn(2 * every)
	f.wants()
}

// shows waits for the page that shows the fault; the alerts fire at the next one.
func (f *fault) shows(metric string, least float64, alerts ...string) {
	f.Helper()
	f.until(metric, least)
	f.scrape()
	f.wants(alerts...)
}

// expire ends a lease in the store, as time would.
func (f *fault) expire(key string) { f.s.Env.Expire(f, key) }

func (f *fault) stopped() {
	p, _ := f.replica()
	other, _, _ := watched(f, f.s.Env.Pool(f), f.s.Env.Dialect)
	f.before()
	f.stop(p)
	f.expire("replica")
	f.s.Take(other, "replica")
	f.s.OK(p.Process.Signal(syscall.SIGCONT))
	f.shows("rowlock_lock_lost_total", 1, "RowlockLocksLost")
}

func (f *fault) killed() {
	f.s = alone(f)
	p, page := f.replica()
	other := f.lives("other")
	f.before()
	waits(f.s, other, "replica")
	f.scrape()
	f.s.OK(p.Process.Kill())
	page.gone = true
	f.expire("replica")
	f.shows("rowlock_lock_expired_total", 1, "RowlockHoldersDie")
}

func (f *fault) limit(limit rowlock.Option) {
	c := f.lives("a")
	f.before()
	f.s.Take(c, "limit "+f.name, limit)
	f.shows("rowlock_lock_lost_total", 1, "RowlockLimitReached")
}

// A renewal is tried again each tenth of the TTL: twice and more between two scrapes.
func (f *fault) refused() {
	gate, source := gated(f, f.s.Env)
	through := *f.s.Env
	through.Source = source
	c := f.on(through.Pool(f), "a", func(c *rowlock.Config) { c.RenewEvery = 100 * time.Millisecond })
	f.before()
	f.s.Take(c, "refused")
	f.until("rowlock_renewal_leases_total", 1)
	f.until("rowlock_renewal_leases_total", 2)
	f.wants()
	gate.shut()
	f.until("rowlock_renewal_failed_total", 1)
	for range 2 {
		f.until("rowlock_renewal_failed_total", f.sum("rowlock_renewal_failed_total")+1)
	}
	f.wants("RowlockRenewalsFail")
	gate.open()
}

// A server that says nothing is waited for until the leases end.
func (f *fault) vanished() {
	through, hole := f.s.Env.BehindHole(f)
	c := f.on(through.Pool(f), "a", func(c *rowlock.Config) {
		c.TTL, c.RenewEvery = 6*time.Second, 100*time.Millisecond
	})
	f.before()
	f.s.Take(c, "vanished")
	f.until("rowlock_renewal_leases_total", 2)
	hole.Vanish()
	f.goOn(2 * every) // which is shorter than the default TTL
	f.wants()
	f.shows("rowlock_lock_lost_total", 1, "RowlockLocksLost")
}

func (f *fault) stuck() {
	holder, c := f.lives("a"), f.lives("b")
	f.s.Take(holder, "stuck")
	waits(f.s, c, "stuck")
	f.until("rowlock_call_waiting", 1)
	f.wants()
	f.goOn(10*time.Minute + every)
	f.wants("RowlockStuck")
}

// One call in twenty waits for longer than 5 s, for more than ten minutes.
func (f *fault) slow() {
	holder, c := f.lives("a"), f.lives("b")
	var held []*rowlock.Lock
	for _, key := range []string{"slow", "slower"} {
		held = append(held, f.s.Take(holder, key))
		waits(f.s, c, key)
	}
	f.before()
	f.s.Elapse(5500 * time.Millisecond)
	f.s.OK(held[0].Unlock(f.s.Context()))
	f.until("rowlock_lock_acquired_total", 3)
	f.goOn(8 * time.Minute)
	f.wants()
	f.s.OK(held[1].Unlock(f.s.Context()))
	f.until("rowlock_lock_acquired_total", 4)
	f.goOn(3 * time.Minute)
	f.wants("RowlockWaitsLong")
}

func (f *fault) cycle() {
	c := f.lives("a")
	f.before()
	a, b := f.s.Take(c, "cycle a"), f.s.Take(c, "cycle b")
	ended := make(chan error, 2)
	for l, key := range map[*rowlock.Lock]string{a: "cycle b", b: "cycle a"} {
		go func() {
			next, err := c.Lock(l.Context(), key)
			if err == nil {
				_ = next.Unlock(context.Background())
			}
			_ = l.Unlock(context.Background())
			ended <- err
		}()
	}
	errs := []error{servertest.Await(f, time.Minute, ended, "a call"), servertest.Await(f, time.Minute, ended, "the other")}
	if !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, rowlock.ErrDeadlock) }) {
		f.Fatalf("the calls ended with %v", errs)
	}
	f.shows("rowlock_call_deadlocked_total", 1, "RowlockDeadlock")
}

func (f *fault) suspicion() {
	c := f.lives("a")
	f.before()
	f.s.Take(c, "own")
	waits(f.s, c, "own")
	f.shows("rowlock_call_suspected_total", 1, "RowlockDeadlockSuspected")
}

func (f *fault) forced() {
	c := f.lives("a", func(c *rowlock.Config) { c.RenewEvery = 100 * time.Millisecond })
	f.before()
	f.s.Take(c, "forced")
	_, err := f.s.Client().ForceRelease(f.s.Context(), "forced", rowlock.Force{Reason: "test"})
	f.s.OK(err)
	f.shows("rowlock_lock_forced_total", 1, "RowlockForcedRelease")
}

func (f *fault) leak() {
	c := f.lives("a")
	f.before()
	_, err := c.Lock(f.s.Context(), "leak")
	f.s.OK(err)
	f.s.Eventually("the garbage collector", func() bool {
		runtime.GC()
		return c.Stats().Leaks > 0
	})
	f.shows("rowlock_lock_leaked_total", 1, "RowlockLeaks")
}

// A transaction has the row locked.
func (f *fault) unreleased() {
	c := f.lives("a")
	f.before()
	l := f.s.Take(c, "unreleased")
	tx := f.s.Begin(f.s.Env.DB, nil)
	defer func() { _ = tx.Rollback() }()
	f.s.Exec(tx, `UPDATE {rowlock} SET note = note WHERE {key} = ?`, []byte("unreleased"))
	ended := servertest.Aside(func() error { return l.Unlock(context.Background()) })
	f.shows("rowlock_lock_unlock_failed_total", 1, "RowlockUnlockFailed")
	if err := servertest.Await(f, time.Minute, ended, "Unlock"); !errors.Is(err, rowlock.ErrUnknown) {
		f.Errorf("Unlock: %v", err)
	}
}

func (f *fault) orphan() {
	through, hole := f.s.Env.BehindHole(f)
	c := f.on(through.Pool(f), "a")
	f.before()
	hole.Vanish()
	f.s.Eventually("an orphan", func() bool { // on a busy machine a call may be over before it is sent
		ctx, cancel := context.WithTimeout(f.s.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.TryLock(ctx, "orphan"); err == nil {
			f.Fatal("a server that is gone has granted a lock")
		}
		return c.Stats().OrphansOpen > 0
	})
	f.until("rowlock_orphan_open", 1)
	f.wants()
	f.goOn(6*time.Minute + every)
	f.wants("RowlockOrphansStay")
}

// The server, or the way to it, is slow.
func (f *fault) busy() {
	gate, source := gated(f, f.s.Env)
	through := *f.s.Env
	through.Source = source
	c := f.on(through.Pool(f), "a", func(c *rowlock.Config) { c.Connections = 2 })
	f.before()
	gate.late.Store(int64(20 * time.Millisecond))
	ctx, cancel := context.WithCancel(f.s.Context())
	var working sync.WaitGroup
	for i := range 64 {
		working.Go(func() {
			for ctx.Err() == nil {
				_ = c.Do(ctx, servertest.Numbered(i), func(context.Context, *rowlock.Lock) error { return nil })
			}
		})
	}
	f.until("rowlock_connection_busy", 2)
	for n := 0; n <= pages10m || f.lately("rowlock_connection_busy") < 1.5; n++ {
		f.s.Elapse(20 * time.Millisecond)
		f.scrape()
	}
	f.wants("RowlockConnectionsBusy")
	cancel()
	gate.late.Store(0)
	working.Wait()
}

func (f *fault) notEvicted() {
	name, seen := f.s.User()
	f.s.Exec(f.s.Env.DB, `GRANT SELECT, UPDATE ON {rowlock} TO `+name)
	c := f.lives("a", func(c *rowlock.Config) { c.EvictAfter = time.Second })
	f.before()
	f.s.Take(f.s.Client(), "stays", rowlock.NoRenew())
	f.expire("stays")
	tx := f.s.Begin(seen.Env.Pool(f), nil)
	defer func() { _ = tx.Rollback() }()
	f.s.Exec(tx, `UPDATE {rowlock} SET note = note WHERE {key} = ?`, []byte("stays"))
	waits(f.s, c, "stays")
	f.shows("rowlock_session_eviction_failed_total", 1, "RowlockEvictionFailed", "RowlockHoldersDie")
}

// The server's own clock is that of the tests: what rowlock's statements read is set instead.
func (f *fault) clock() {
	schema := f.s.Env.Dialect.Names().Prefix + "clock"
	for _, q := range []string{
		`CREATE SCHEMA ` + schema,
		`CREATE TABLE ` + schema + `.ahead AS SELECT interval '0' AS by`,
		`CREATE FUNCTION ` + schema + `.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
		 'SELECT pg_catalog.clock_timestamp() + by FROM ` + schema + `.ahead'`,
	} {
		f.s.Exec(f.s.Env.DB, q)
	}
	f.Cleanup(func() { f.s.Env.Exec(f, `DROP SCHEMA `+schema+` CASCADE`) })
	seen := f.s.With("search_path=" + schema + ",pg_catalog,public")
	c := f.on(seen.Env.Pool(f), "a", func(c *rowlock.Config) { c.RenewEvery = 100 * time.Millisecond })
	f.before()
	f.s.Take(c, "clock")
	f.until("rowlock_renewal_leases_total", 2)
	f.s.Exec(f.s.Env.DB, `UPDATE `+schema+`.ahead SET by = interval '10 s'`)
	f.shows("rowlock_clock_skewed_total", 1, "RowlockClockSkewed")
}

// A failover to a replica without the last commits brings the row back as it was.
func (f *fault) forgotten() {
	f.s = alone(f)
	table, err := rowlock.OpenTable(f.s.Env.Pool(f), f.s.Env.Dialect, servertest.Config())
	f.s.OK(err)
	f.Cleanup(func() { _ = table.Close() })
	_, address, metrics := watched(f, f.s.Env.Pool(f), f.s.Env.Dialect)
	f.add("a", address)
	b, err := paxosbridge.New(f.s.Context(), table, memcluster.New(),
		&paxosbridge.Config{Every: -1, Hooks: paxosbridge.Hooks{Recalled: metrics.Recalled}})
	f.s.OK(err)
	f.Cleanup(func() { _ = b.Close() })
	f.before()
	f.s.OK(b.MoveOut(f.s.Context(), "moved", "test"))
	f.s.Exec(f.s.Env.DB, `DELETE FROM {rowlock} WHERE {key} = ?`, []byte("moved"))
	f.s.OK(b.Audit(f.s.Context()))
	f.shows("rowlock_key_recalled_total", 1, "RowlockMoveForgotten")
}

// waits has a call wait for a key until the test ends.
func waits(s *servertest.Scene, c *rowlock.Client, key string) {
	s.Helper()
	waiting := make(chan struct{}, 1000)
	ended := servertest.Aside(func() error {
		l, err := c.Lock(s.Context(), key, rowlock.OnWait(func(rowlock.Waiting) {
			select {
			case waiting <- struct{}{}:
			default:
			}
		}))
		if err == nil {
			err = l.Unlock(context.Background())
		}
		return err
	})
	servertest.Await(s, time.Minute, waiting, "a call to wait")
	s.Cleanup(func() { <-ended })
}

// alone is the scene with tables of its own.
func alone(f *fault) *servertest.Scene {
	for _, k := range testdb.Kinds {
		if k.Name == f.s.Env.Name {
			return &servertest.Scene{T: f.s.T, Env: k.Open(f)}
		}
	}
	return nil
}
