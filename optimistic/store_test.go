package optimistic_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// locking is the store of rowlock.Open, on the same rows.
func locking(tb testing.TB, e *testdb.Env) *table.Store {
	tb.Helper()
	s, _, err := table.Open(tb.Context(), e.DB, e.Dialect, table.Options{Connections: cmp.Or(e.Dialect.Connections(), 3), Timeout: 5 * time.Second})
	ok(tb, err)
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// Clients of both kinds want one key, and reapers of both kinds remove its row whenever it is free.
// Never two at once, and tokens only rise, also across the removals.
func TestBothKindsOfClientExcludeEachOther(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		stores := []lease.Store{open(t, e), locking(t, e), open(t, e), locking(t, e)}
		var (
			wg      sync.WaitGroup
			holders atomic.Int32
			mu      sync.Mutex
			tokens  []lease.Token
			by      [2]int
		)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// On a slow machine a second may not be enough for both kinds.
		slow := time.Now().Add(time.Minute)
		wanting := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return (by[0] == 0 || by[1] == 0) && time.Now().Before(slow)
		}
		contend := func(i int, s lease.Store) {
			for ctx.Err() == nil || wanting() {
				req := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
				a, err := s.Acquire(t.Context(), []lease.AcquireRequest{req})
				if err != nil && !errors.Is(err, lease.ErrBusy) {
					t.Error(err)
				}
				if err != nil || !a[0].Granted {
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d holders at once", n)
				}
				mu.Lock()
				tokens, by[i%2] = append(tokens, a[0].Token), by[i%2]+1
				mu.Unlock()
				holders.Add(-1)
				for err = lease.ErrBusy; errors.Is(err, lease.ErrBusy); {
					_, err = s.Release(t.Context(), []lease.Lease{{Key: "k", Owner: req.Owner, Token: a[0].Token}})
				}
				ok(t, err)
			}
		}
		for i, s := range stores {
			wg.Go(func() { contend(i, s) })
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := s.(lease.Sweeper).Sweep(ctx, lease.SweepOptions{}); err != nil && ctx.Err() == nil && !errors.Is(err, lease.ErrBusy) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Fatalf("token %d was granted after %d", tokens[i], tokens[i-1])
			}
		}
		if by[0] == 0 || by[1] == 0 {
			t.Errorf("grants: %d by compare-and-swap, %d by row lock; the test proves nothing", by[0], by[1])
		}
		t.Logf("grants: %d by compare-and-swap, %d by row lock", by[0], by[1])
	})
}

// tapped is a store whose statements can be seen and held up.
func tapped(tb testing.TB, e *testdb.Env, inj ...faultdb.Injector) (*optimistic.Store, *faultdb.Log) {
	tb.Helper()
	log := &faultdb.Log{}
	db, err := faultdb.Open(e.Driver, e.Source, faultdb.Any(append([]faultdb.Injector{log}, inj...)...))
	ok(tb, err)
	tb.Cleanup(func() { _ = db.Close() })
	s, err := optimistic.New(db, e.Dialect, optimistic.Connections(1))
	ok(tb, err)
	tb.Cleanup(func() { _ = s.Close() })
	log.Reset()
	return s, log
}

// on matches the executions of one section once it is switched on.
func on(section string, f faultdb.Fault) *faultdb.Toggle {
	return faultdb.NewToggle(faultdb.OnFunc(runs(section), faultdb.Nth(1, f)))
}

// runs matches the executions of one section.
func runs(section string) func(faultdb.Op) bool {
	return func(op faultdb.Op) bool { return op.Executes() && isOf(op.Query, section) }
}

// isOf reports whether a query is that of a section: in its text stands the session's era.
func isOf(query, section string) bool { return strings.Contains(query, "/* rowlock "+section+" */") }

func TestALoserReadsOnceAndARecurringKeyCostsOneReadAndOneWrite(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s, log := tapped(t, e)
		release(t, s, hold(t, s, "k"))
		log.Reset()
		l := hold(t, s, "k")
		if q := log.Queries(); len(q) != 2 || !isOf(q[0], "cas-look") || !isOf(q[1], "cas-take-free") {
			t.Errorf("a free key that is there took %q", q)
		}
		log.Reset()
		if _, a := ask(t, s, "k"); a.Granted || a.Holder.Note != "test" {
			t.Errorf("a held key: %+v", a)
		}
		if q := log.Queries(); len(q) != 1 || !isOf(q[0], "cas-look") {
			t.Errorf("losing took %q", q)
		}
		release(t, s, l)
	})
}

// No statement of the store, whatever it is asked, locks what it only reads.
func TestNothingThatIsSentLocksWhatItReads(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s, log := tapped(t, e)
		for range 2 {
			l := hold(t, s, "k")
			_, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}, {Lease: lease.Lease{Key: "lost", Owner: l.Owner, Token: 9}, TTL: ttl}})
			ok(t, err)
			next, err := s.HandOver(t.Context(), []lease.HandOver{{From: l, To: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}}})
			ok(t, err)
			e.Expire(t, "k")
			if l = hold(t, s, "k"); l.Token <= next[0].Token {
				t.Errorf("token %d after %d", l.Token, next[0].Token)
			}
			tx, err := e.DB.BeginTx(t.Context(), nil)
			ok(t, err)
			ok(t, s.Fence(t.Context(), lease.InTx(tx), l))
			ok(t, s.ReleaseTx(t.Context(), lease.InTx(tx), l))
			ok(t, tx.Commit())
			process := lease.NewOwner()
			ok(t, s.Register(t.Context(), process, "", []string{"k"}, time.Microsecond))
			_, err = s.Sweep(t.Context(), lease.SweepOptions{})
			ok(t, err)
		}
		for _, q := range append(log.Queries(), e.Dialect.Text("cas-fence")) {
			for _, word := range []string{"FOR UPDATE", "FOR NO KEY", "FOR SHARE", "FOR KEY", "SHARE MODE", "SKIP LOCKED", "NOWAIT", "LAST_INSERT_ID", "GET_LOCK", "advisory"} {
				if strings.Contains(q, word) {
					t.Errorf("%s in %s", word, q)
				}
			}
		}
	})
}

// A renewal that was long on its way must not bring back what has expired, nor touch what another
// has.
func TestALateRenewalDoesNotRevive(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		section := "cas-renew"
		if e.Name == "sqlite" {
			section = "renew"
		}
		for _, taken := range []bool{false, true} {
			gate := faultdb.NewGate()
			held := on(section, faultdb.Block(gate))
			s, _ := tapped(t, e, held)
			other := open(t, e)
			l := hold(t, s, "k")
			held.On()
			renewed := make(chan lease.Renewed, 1)
			go func() {
				defer close(renewed)
				if a, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: 2 * ttl}}); err == nil {
					renewed <- a[0]
				}
			}()
			<-gate.Arrived()
			e.Expire(t, "k")
			var next lease.Lease
			if taken {
				next = hold(t, other, "k")
			}
			gate.Release()
			if a := <-renewed; a.Outcome != lease.Lost {
				t.Errorf("taken %v: a late renewal: %+v", taken, a)
			}
			rows, err := other.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
			ok(t, err)
			if rows[0].Held != taken || rows[0].Remaining > ttl || taken && rows[0].Lease != next {
				t.Errorf("taken %v: the row is %+v", taken, rows[0])
			}
			if !taken {
				next = hold(t, other, "k")
			}
			release(t, other, next)
		}
	})
}

// A user that has acquired, renewed and released by compare-and-swap needs no right to lock a
// floor, which only the reaper writes.
func TestARoleWithoutTheRightToLockWorksAndCannotSweep(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("SQLite has no roles")
		}
		name := e.Dialect.Names().Prefix + "user"
		source := e.Source
		if e.Driver == "pgx" {
			e.Exec(t, `CREATE ROLE `+name+` LOGIN`)
			t.Cleanup(func() { e.Exec(t, `DROP OWNED BY `+name); e.Exec(t, `DROP ROLE `+name) })
			u, err := url.Parse(source)
			ok(t, err)
			u.User = url.User(name)
			source = u.String()
		} else {
			e.Exec(t, `CREATE USER `+name)
			t.Cleanup(func() { e.Exec(t, `DROP USER `+name) })
			source = name + source[strings.Index(source, "@"):]
		}
		grant := func(rights map[string]string) {
			for what, r := range rights {
				e.Exec(t, `GRANT `+r+` ON {`+what+`} TO `+name)
			}
		}
		db, err := sql.Open(e.Driver, source)
		ok(t, err)
		defer db.Close()
		grant(map[string]string{"rowlock": "SELECT, INSERT, UPDATE", "rowlock_floor": "SELECT", "rowlock_meta": "SELECT", "rowlock_queue": "SELECT"})
		_, err = optimistic.New(db, e.Dialect, optimistic.Connections(2))
		wantIs(t, err, lease.ErrPrivilege)
		p := e.Dialect.Names().Prefix
		if wantSays(t, err, p+"rowlock_queue"); strings.Contains(err.Error(), "DELETE on "+p+"rowlock,") || strings.Contains(err.Error(), "UPDATE on "+p+"rowlock_floor") {
			t.Errorf("it asks for rights that only sweeping takes: %v", err)
		}
		grant(map[string]string{
			"rowlock_queue": "SELECT, INSERT, UPDATE, DELETE", "rowlock_wait": "SELECT, INSERT, UPDATE, DELETE",
			"rowlock_meta":   "SELECT, INSERT, UPDATE, DELETE",
			"rowlock_member": "SELECT, INSERT, UPDATE, DELETE", "rowlock_limit": "SELECT, INSERT, UPDATE",
		})
		if _, _, err := table.Open(t.Context(), db, e.Dialect, table.Options{Connections: 1, Timeout: 5 * time.Second}); !errors.Is(err, lease.ErrPrivilege) {
			t.Errorf("the store that locks rows opens with %v: the test proves nothing", err)
		}
		s, err := optimistic.New(db, e.Dialect, optimistic.Connections(2))
		ok(t, err)
		defer s.Close()
		last := lease.Token(0)
		for range 3 {
			l := hold(t, s, "k")
			if l.Token <= last {
				t.Errorf("token %d after %d", l.Token, last)
			}
			last = l.Token
			renewed, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: 2 * ttl}})
			if err != nil || renewed[0].Outcome != lease.Extended {
				t.Errorf("renew: %+v, %v", renewed, err)
			}
			tx, err := db.BeginTx(t.Context(), nil)
			ok(t, err)
			ok(t, s.Fence(t.Context(), lease.InTx(tx), l))
			ok(t, tx.Commit())
			release(t, s, l)
		}
		_, err = s.Sweep(t.Context(), lease.SweepOptions{})
		wantIs(t, err, lease.ErrPrivilege)
		e.Exec(t, `GRANT UPDATE ON {rowlock_floor} TO `+name)
		e.Exec(t, `GRANT DELETE ON {rowlock} TO `+name)
		n, err := s.Sweep(t.Context(), lease.SweepOptions{})
		ok(t, err)
		if n < 2 { // the key, and what New could not remove
			t.Errorf("%d rows were swept, want 2", n)
		}
		if l := hold(t, s, "k"); l.Token <= last {
			t.Errorf("token %d after %d and a sweep", l.Token, last)
		}
	})
}

// The fence has to change something on MySQL, or a driver that counts changed rows would see none.
func TestAFencePassesHoweverRowsAreCounted(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("only MySQL's driver counts in two ways")
		}
		s := open(t, e)
		for _, found := range []string{"true", "false"} {
			db, err := sql.Open(e.Driver, e.Source+"?clientFoundRows="+found)
			ok(t, err)
			l := hold(t, s, "k")
			for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
				tx := beginAt(t, db, level)
				for range 3 {
					ok(t, s.Fence(t.Context(), lease.InTx(tx), l))
				}
				ok(t, tx.Commit())
			}
			l.Token++
			tx := beginAt(t, db, sql.LevelDefault)
			wantIs(t, s.Fence(t.Context(), lease.InTx(tx), l), lease.ErrFenced)
			ok(t, tx.Rollback())
			ok(t, db.Close())
			l.Token--
			release(t, s, l)
		}
	})
}

// Several of a batch are locked by fences: they are busy, each of the others is extended, and it
// does not take for ever.
func TestABatchWithFencedLeasesRenewsTheOthers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("in SQLite a fence holds up every write")
		}
		s := open(t, e)
		reqs := make([]lease.RenewRequest, 12)
		tx := beginAt(t, e.DB, sql.LevelDefault)
		for i := range reqs {
			reqs[i] = lease.RenewRequest{Lease: hold(t, s, "k"+string(rune('a'+i))), TTL: 2 * ttl}
		}
		ok(t, s.Fence(t.Context(), lease.InTx(tx), reqs[5].Lease))
		due := reqs
		for tries := 1; len(due) > 0; tries++ {
			began := time.Now()
			answers, err := s.Renew(t.Context(), due)
			ok(t, err)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			var untried []lease.RenewRequest // as on a machine that is slow, for the next renewal
			for i, a := range answers {
				want := lease.Extended
				if due[i].Lease == reqs[5].Lease {
					want = lease.Busy
				}
				switch {
				case errors.Is(a.Err, lease.ErrBusy) && tries < 5:
					untried = append(untried, due[i])
				case a.Outcome != want || a.Err != nil || a.Clock == 0:
					t.Errorf("%q: %+v, want %v", due[i].Key, a, want)
				}
			}
			due = untried
		}
	})
}

// What is locked for long keeps the others waiting once, and not at every renewal: it is left out
// of the batch until it can be extended.
func TestALeaseThatStaysFencedIsLeftOutOfTheBatch(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("in SQLite a fence holds up every write")
		}
		s, log := tapped(t, e)
		reqs := make([]lease.RenewRequest, 12)
		for i := range reqs {
			reqs[i] = lease.RenewRequest{Lease: hold(t, s, "k"+string(rune('a'+i))), TTL: 2 * ttl}
		}
		tx := beginAt(t, e.DB, sql.LevelDefault)
		for _, i := range []int{3, 8} {
			ok(t, s.Fence(t.Context(), lease.InTx(tx), reqs[i].Lease))
		}
		renew := func() (statements, extended, busy int) {
			log.Reset()
			answers, err := s.Renew(t.Context(), reqs)
			ok(t, err)
			for i, a := range answers {
				switch {
				case a.Outcome == lease.Extended:
					extended++
				case a.Outcome == lease.Busy && (i == 3 || i == 8):
					busy++
				case a.Err == nil:
					t.Errorf("lease %d: %+v", i, a)
				}
			}
			return log.Count(runs("cas-renew")), extended, busy
		}
		for range 5 { // MySQL may have no time to find both at once
			if _, extended, busy := renew(); extended == 10 && busy == 2 {
				break
			}
		}
		if n, extended, busy := renew(); n > 3 || extended != 10 || busy == 0 {
			t.Errorf("%d statements, %d extended, %d busy, want 10 extended in one and one for each of the others", n, extended, busy)
		}
		ok(t, tx.Rollback())
		for _, want := range []int{3, 1} {
			if n, extended, _ := renew(); n != want || extended != 12 {
				t.Errorf("nobody is fenced: %d statements, want %d; %d extended", n, want, extended)
			}
		}
	})
}

// With less time than a statement may wait for one locked row, none of the leases would be renewed
// for as long as it is locked.
func TestNewRefusesATimeoutThatALockedRowWouldUseUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		least := map[string]time.Duration{"mysql": 5 * time.Second, "postgres": 250 * time.Millisecond}[e.Name]
		if least == 0 {
			t.Skip("nobody waits for a locked row")
		}
		_, err := optimistic.New(e.DB, e.Dialect, optimistic.Connections(1), optimistic.Timeout(least-time.Millisecond))
		wantIs(t, err, lease.ErrConfig)
		wantSays(t, err, least.String())
		openShort(t, e, least)
	})
}

// openShort opens with a Timeout that a busy machine may need for a statement of the opening's.
func openShort(t *testing.T, e *testdb.Env, timeout time.Duration) *optimistic.Store {
	t.Helper()
	var s *optimistic.Store
	var err error
	for began := time.Now(); s == nil && time.Since(began) < patience; {
		s, err = optimistic.New(e.DB, e.Dialect, optimistic.Connections(2), optimistic.Timeout(timeout))
		if errors.Is(err, lease.ErrConfig) {
			break
		}
	}
	ok(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// However many are locked, a renewal gives an answer for each before its time is up.
func TestLockedLeasesDoNotUseUpTheTimeOfARenewal(t *testing.T) {
	e := testdb.Kinds[1].Open(t) // Postgres, whose wait is short
	s := openShort(t, e, 250*time.Millisecond)
	tx := beginAt(t, e.DB, sql.LevelDefault)
	reqs := make([]lease.RenewRequest, 6)
	for i := range reqs {
		reqs[i] = lease.RenewRequest{Lease: hold(t, s, "k"+string(rune('a'+i))), TTL: 2 * ttl}
		ok(t, s.Fence(t.Context(), lease.InTx(tx), reqs[i].Lease))
	}
	var answers []lease.Renewed
	var err error
	for range 4 { // on a busy machine it may take longer
		if answers, err = s.Renew(t.Context(), reqs); err == nil {
			break
		}
	}
	ok(t, err)
	for i, a := range answers {
		if a.Outcome != lease.Busy && !errors.Is(a.Err, lease.ErrBusy) {
			t.Errorf("lease %d: %+v", i, a)
		}
	}
}

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	for _, c := range []struct {
		db   optimistic.DB
		d    dialect.Dialect
		opts []optimistic.Option
	}{
		{nil, e.Dialect, nil},
		{(*sql.DB)(nil), e.Dialect, nil},
		{e.DB, nil, nil},
		{e.DB, e.Dialect, []optimistic.Option{optimistic.Connections(0)}},
		{e.DB, e.Dialect, []optimistic.Option{optimistic.Timeout(time.Millisecond)}},
	} {
		_, err := optimistic.New(c.db, c.d, c.opts...)
		wantIs(t, err, lease.ErrConfig)
	}
	small := e.Pool(t)
	small.SetMaxOpenConns(1)
	_, err := optimistic.New(small, e.Dialect)
	wantIs(t, err, lease.ErrPool)
}

// The queue needs row locks, so it is not offered.
func TestTheStoreMakesAClientThatCannotBeFair(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := open(t, e)
		_, err := rowlock.New(s, &rowlock.Config{Fair: true})
		wantIs(t, err, lease.ErrUnsupported)
		c, err := rowlock.New(s, nil)
		ok(t, err)
		defer c.Close()
		l, err := c.Lock(t.Context(), "k")
		ok(t, err)
		next := make(chan error, 1)
		go func() { next <- c.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error { return nil }) }()
		ok(t, l.Unlock(t.Context()))
		select {
		case err := <-next:
			ok(t, err)
		case <-time.After(patience):
			t.Fatal("a waiter was not let in")
		}
	})
}
