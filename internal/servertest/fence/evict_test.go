package fence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// evictTTL is longer than a busy machine is late: a shorter lease is lost, and a call with a shorter
// one may end with an unknown outcome. What is to expire is expired in the database.
const (
	evictTTL   = 20 * time.Second
	evictAfter = 2 * time.Second
)

// briefly is what a lease lasts that is to run out, after its fence.
const briefly = 3 * time.Second

// eviction is one call of a client's hook.
type eviction struct {
	key     string
	session int64
	err     error
	parent  any // of the hook's ctx
}

// asked is the key of a value in the ctx of calls.
type asked struct{}

// evictor returns a client that ends sessions after a bound, the calls of its hook, and its log.
func evictor(s *servertest.Scene, pool *sql.DB, after time.Duration,
	fair bool,
) (*rowlock.Client, <-chan eviction, *clienttest.Journal) {
	s.Helper()
	evicted, log := make(chan eviction, 16), &clienttest.Journal{}
	cfg := rowlock.Config{
		TTL: evictTTL, EvictAfter: after, Fair: fair, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}
	cfg.Reaper.Off = true
	cfg.Hooks.Evicted = func(ctx context.Context, key string, session int64, err error) {
		evicted <- eviction{key, session, err, ctx.Value(asked{})}
	}
	c, err := rowlock.Open(pool, s.Env.Dialect, &cfg)
	s.OK(err)
	s.Cleanup(func() { _ = c.Close() })
	return c, evicted, log
}

// expired has a client whose lease of a key has run out.
func expired(s *servertest.Scene, key string) {
	s.Helper()
	s.Take(s.ClientOn(s.Env.DB, servertest.WithTTL(evictTTL)), key, rowlock.NoRenew())
	s.Env.Expire(s, key)
}

// fencing begins a transaction on pool that fences and writes, under a lease that has run out.
func fencing(s *servertest.Scene, pool *sql.DB, key, written string) *sql.Tx {
	s.Helper()
	c, _, _ := evictor(s, pool, -1, false)
	l := s.Take(c, key, rowlock.NoRenew(), rowlock.TTL(briefly)) // what Close would wait for
	s.Env.Expire(s, key)
	// s.Context() ends before the clean-up, and would roll back
	ctx, cancel := context.WithCancel(context.Background())
	// database/sql watches a transaction until it is ended or its context is
	s.Cleanup(cancel)
	tx, err := pool.BeginTx(ctx, nil)
	s.OK(err)
	s.OK(l.Fence(s.Context(), tx))
	_, err = tx.ExecContext(s.Context(), `INSERT INTO `+written+` (n) VALUES (1)`)
	s.OK(err)
	return tx
}

func written(s *servertest.Scene) (table string) {
	s.Helper()
	table = s.Env.Dialect.Names().Prefix + "written"
	s.Exec(s.Env.DB, `CREATE TABLE `+table+` (n INT)`)
	s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+table) })
	return table
}

// H42: the server would notice after two hours.
func TestAClientThatVanishesInsideAFenceKeepsItsKeyNoLongerThanTheBound(t *testing.T) {
	for _, fair := range []bool{false, true} {
		for _, ask := range []string{"Lock", "LockAll", "TryLock"} {
			t.Run(fmt.Sprintf("%s, fair %t", ask, fair), func(t *testing.T) {
				t.Parallel()
				servertest.EachServer(t, func(s *servertest.Scene) {
					key, written := fmt.Sprint(ask, fair), written(s)
					through, h := s.Env.BehindHole(s)
					pool := through.Pool(s)
					_ = fencing(s, pool, key, written)
					h.Vanish()
					began := time.Now()
					c, evicted, log := evictor(s, s.Env.DB, evictAfter, fair)
					parent := context.WithValue(s.Context(), asked{}, ask)
					ctx, cancel := context.WithTimeout(parent, time.Minute)
					defer cancel()
					s.OK(asks(ctx, c, ask, key))
					if took, most := time.Since(began), evictAfter+servertest.Promptly; took > most {
						s.Errorf("had after %s, want at most %s", took, most)
					}
					e := servertest.Await(s, servertest.Patience, evicted, "the hook")
					if e.key != key || e.session == 0 || e.err != nil || e.parent != ask {
						s.Errorf("called with %+v", e)
					}
					if !strings.Contains(log.String(), "ended the session") {
						s.Errorf("the log says nothing: %s", log)
					}
					if n := s.Number(`SELECT count(*) FROM ` + written); n != 0 {
						s.Errorf("%d rows of a transaction that was ended", n)
					}
				})
			})
		}
	}
}

// asks tries in one way until it has the key.
func asks(ctx context.Context, c *rowlock.Client, how, key string) (err error) {
	switch how {
	case "Lock":
		_, err = c.Lock(ctx, key)
	case "LockAll":
		_, err = c.LockAll(ctx, []string{key, key + "b"})
	default:
		for {
			if _, err = c.TryLock(ctx, key); !errors.Is(err, rowlock.ErrHeld) || ctx.Err() != nil {
				return err
			}
			select {
			case <-time.After(50 * time.Millisecond): // a caller that comes now and then
			case <-ctx.Done():
			}
		}
	}
	return err
}

// A holder that is alive and late is left alone for as long as the bound says, and for ever
// without a bound.
func TestALateHolderIsEvictedOnlyAfterTheBound(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		written := written(s)
		tx := fencing(s, s.Env.Pool(s), "key", written)
		off, _, _ := evictor(s, s.Env.DB, -1, false)
		ctx, cancel := context.WithTimeout(s.Context(), 2*evictAfter)
		defer cancel()
		_, err := off.Lock(ctx, "key")
		servertest.WantErr(s, err, rowlock.ErrHeld)
		_, err = tx.ExecContext(s.Context(), `INSERT INTO `+written+` (n) VALUES (2)`)
		s.OK(err) // it is alive

		began := time.Now()
		on, evicted, _ := evictor(s, s.Env.DB, evictAfter, false)
		_, err = on.Lock(s.Context(), "key")
		s.OK(err)
		if took := time.Since(began); took < evictAfter {
			s.Errorf("evicted after %s, want no sooner than after %s", took, evictAfter)
		}
		servertest.Await(s, servertest.Patience, evicted, "the hook")
		if tx.Commit() == nil {
			s.Error("committed, though its key was taken")
		}
		if n := s.Number(`SELECT count(*) FROM ` + written); n != 0 {
			s.Errorf("%d rows of a transaction that was ended", n)
		}
	})
}

// A young transaction has not kept the key, though it has the row locked now.
func TestAYoungTransactionIsNotEvicted(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		c, evicted, _ := evictor(s, s.Env.DB, evictAfter, false)
		expired(s, "key")
		share := map[bool]string{true: ` FOR SHARE`, false: ` LOCK IN SHARE MODE`}[s.Is("postgres")]
		lock := s.Env.SQL(`SELECT 1 FROM {rowlock} WHERE {key} = ?` + share)
		var oldest atomic.Int64 // of these transactions, as far as this machine let them be young
		stop, stopped, first := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() { // it is always locked, each time by another transaction
			defer close(stopped)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel() // ends the two that are open, also after an error
			var before *sql.Tx
			for begun := time.Now(); ; {
				last := begun
				begun = time.Now()
				tx, err := s.Env.DB.BeginTx(ctx, nil)
				if err == nil {
					var one int
					err = tx.QueryRowContext(ctx, lock, []byte("key")).Scan(&one)
				}
				if err == nil && before != nil {
					err = before.Rollback() // the next has the row before the last lets it go
				}
				oldest.Store(max(oldest.Load(), int64(time.Since(last))))
				if err != nil && oldest.Load() < int64(evictAfter) {
					s.Errorf("a young transaction was ended: %v", err)
				}
				if err != nil {
					return
				}
				if before == nil {
					close(first)
				}
				before = tx
				select {
				case <-stop:
					_ = tx.Rollback()
					return
				case <-time.After(evictAfter / 4):
				}
			}
		}()
		servertest.Await(s, servertest.Patience, first, "the first lock")
		ctx, cancel := context.WithTimeout(s.Context(), 4*evictAfter)
		defer cancel()
		for ctx.Err() == nil {
			if _, err := c.TryLock(ctx, "key"); err == nil && oldest.Load() < int64(evictAfter) {
				s.Error("got it, though the row was always locked")
				break
			}
		}
		close(stop)
		<-stopped
		if age := time.Duration(oldest.Load()); age >= evictAfter {
			s.Logf("a transaction was %s old: nothing can be said on a machine with so much other work", age)
			return
		}
		for len(evicted) > 0 { // also of an attempt that a busy machine has not answered in time
			if e := <-evicted; e.session != 0 || e.err == nil {
				s.Errorf("called with %+v: %v", e, e.err)
			}
		}
	})
}

// MariaDB gives no number to a transaction that has written nothing. One that has locked another
// row, and is as old, is not taken for the one that blocks.
func TestATransactionThatHasLockedAnotherRowIsNotEvicted(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		c, evicted, _ := evictor(s, s.Env.DB, evictAfter, false)
		expired(s, "key")
		expired(s, "another")
		lock := s.Env.SQL(`SELECT 1 FROM {rowlock} WHERE {key} = ? ` +
			map[bool]string{true: `FOR SHARE`, false: `LOCK IN SHARE MODE`}[s.Is("postgres")])
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		locked := func(key string) *sql.Tx {
			tx, err := s.Env.DB.BeginTx(ctx, nil)
			s.OK(err)
			s.OK(tx.QueryRowContext(ctx, lock, []byte(key)).Scan(new(int)))
			return tx
		}
		defer func(tx *sql.Tx) { _ = tx.Rollback() }(locked("key"))
		other := locked("another")
		s.Elapse(evictAfter + time.Second) // both are older than the bound
		waits := servertest.Aside(func() error { _, err := c.Lock(ctx, "key"); return err })
		select {
		case <-evicted: // this server tells the two apart
		case <-time.After(2 * evictAfter):
		}
		s.OK(other.QueryRowContext(ctx, lock, []byte("another")).Scan(new(int)))
		s.OK(other.Rollback())
		s.OK(servertest.Await(s, 2*servertest.Patience, waits, "the key"))
	})
}

// The sessions of another database user are left alone.
func TestAnotherUsersTransactionIsReportedAndLeftAlone(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Exec(s.Env.DB, `GRANT SELECT, UPDATE ON {rowlock} TO `+name)
		c, evicted, log := evictor(s, s.Env.DB, evictAfter, false)
		expired(s, "key")
		tx, err := seen.Env.Pool(s).BeginTx(s.Context(), nil)
		s.OK(err)
		_, err = tx.ExecContext(s.Context(),
			s.Env.SQL(`UPDATE {rowlock} SET note = note WHERE {key} = ?`), []byte("key"))
		s.OK(err)
		ctx, cancel := context.WithCancel(s.Context())
		waits := servertest.Aside(func() error { _, err := c.Lock(ctx, "key"); return err })
		e := answered(s, evicted)
		servertest.WantErr(s, e.err, rowlock.ErrPrivilege)
		if e.session == 0 || !strings.Contains(e.err.Error(), name) ||
			!strings.Contains(log.String(), name) {
			s.Errorf("called with %+v; the log: %s", e, log)
		}
		cancel()
		<-waits
		s.OK(tx.Commit())
	})
}

// answered returns the first eviction whose outcome is known: on a busy machine the server may take
// longer than an attempt waits.
func answered(s *servertest.Scene, evicted <-chan eviction) eviction {
	s.Helper()
	for {
		// MariaDB tells what it told before while anybody reads its transactions more often than
		// each 100 ms.
		e := servertest.Await(s, 2*servertest.Patience, evicted, "the hook")
		if !errors.Is(e.err, rowlock.ErrUnknown) {
			return e
		}
	}
}

// A database user that may not read the sessions is told so at Open and when a key is stuck.
func TestAUserThatMayNotReadSessionsIsToldSo(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		if s.Is("postgres") {
			s.Skip("every user may read sessions, and end its own")
		}
		name, seen := s.User()
		s.Grant(name)
		written := written(s)
		s.Exec(s.Env.DB, `GRANT SELECT, INSERT ON `+written+` TO `+name)
		tx := fencing((&servertest.Scene{T: s.T, Env: seen.Env}), seen.Env.Pool(s), "key", written)
		here := &servertest.Scene{T: s.T, Env: seen.Env}
		c, evicted, log := evictor(here, seen.Env.Pool(s), evictAfter, false)
		if !strings.Contains(log.String(), "; GRANT ") {
			s.Errorf("Open does not say what is missing: %s", log)
		}
		ctx, cancel := context.WithCancel(s.Context())
		waits := servertest.Aside(func() error { _, err := c.Lock(ctx, "key"); return err })
		e := answered(s, evicted)
		servertest.WantErr(s, e.err, rowlock.ErrPrivilege)
		cancel()
		<-waits
		s.OK(tx.Commit())
	})
}

// Two readers vanish inside transactions that fence: the row of a key that readers share has no end
// of its own.
func TestReadersThatVanishInsideAFenceKeepTheirKeyNoLongerThanTheBound(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		written := written(s)
		readers, _, _ := evictor(s, s.Env.Pool(s), -1, false)
		for range 2 {
			l, err := readers.TryRLock(s.Context(), "key", rowlock.NoRenew(), rowlock.TTL(briefly))
			s.OK(err)
			s.Cleanup(func() { runtime.KeepAlive(l) })
			ctx, cancel := context.WithCancel(context.Background())
			s.Cleanup(cancel)
			tx, err := s.Env.DB.BeginTx(ctx, nil)
			s.OK(err)
			s.OK(l.Fence(s.Context(), tx))
			_, err = tx.ExecContext(s.Context(), `INSERT INTO `+written+` (n) VALUES (1)`)
			s.OK(err)
		}
		c, evicted, _ := evictor(s, s.Env.Pool(s), evictAfter, false)
		ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		_, err := c.Lock(ctx, "key")
		s.OK(err)
		for range 2 {
			if e := servertest.Await(s, servertest.Patience, evicted, "the hook"); e.session == 0 || e.err != nil {
				s.Errorf("called with %+v", e)
			}
		}
		if n := s.Number(`SELECT count(*) FROM ` + written); n != 0 {
			s.Errorf("%d rows of transactions that were ended", n)
		}
	})
}

// A reader whose lease lasts keeps its key, whatever another has left behind.
func TestALiveReaderIsNotEvictedForOneThatHasVanished(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		left, _, _ := evictor(s, s.Env.Pool(s), -1, false)
		l, err := left.TryRLock(s.Context(), "key", rowlock.NoRenew(), rowlock.TTL(briefly))
		s.OK(err)
		tx, err := s.Env.DB.BeginTx(s.Context(), nil)
		s.OK(err)
		s.OK(l.Fence(s.Context(), tx))
		live, _, _ := evictor(s, s.Env.Pool(s), -1, false)
		kept, err := live.TryRLock(s.Context(), "key")
		s.OK(err)
		defer runtime.KeepAlive(kept) // a handle that is garbage releases its key
		<-l.Context().Done()
		c, evicted, _ := evictor(s, s.Env.Pool(s), time.Second, false)
		ctx, cancel := context.WithTimeout(s.Context(), 4*time.Second)
		defer cancel()
		_, err = c.Lock(ctx, "key")
		servertest.WantErr(s, err, context.DeadlineExceeded)
		if len(evicted) > 0 {
			s.Errorf("called with %+v", <-evicted)
		}
		s.OK(tx.Rollback())
	})
}

// A prepared transaction has no session that could be ended: only its coordinator or an operator
// may decide it.
func TestAPreparedTransactionThatKeepsAKeyIsNamedToThoseThatWait(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		c, evicted, log := evictor(s, s.Env.Pool(s), time.Second, false)
		expired(s, "key")
		gid := s.Env.Dialect.Names().Prefix + "gid"
		begin, prepare, end := `XA START '`+gid+`'`, []string{`XA END '` + gid + `'`, `XA PREPARE '` + gid + `'`}, `XA ROLLBACK '`+gid+`'`
		want := `XA ROLLBACK '` + gid + `','',1`
		if s.Is("postgres") {
			if s.Number(`SELECT setting::bigint FROM pg_settings WHERE name = 'max_prepared_transactions'`) == 0 {
				s.Skip("the server has max_prepared_transactions = 0")
			}
			begin, prepare, end = `BEGIN`, []string{`PREPARE TRANSACTION '` + gid + `'`}, `ROLLBACK PREPARED '`+gid+`'`
			want = end
		}
		conn, err := s.Env.Pool(s).Conn(s.Context())
		s.OK(err)
		run := func(query string, args ...any) {
			s.Helper()
			_, err := conn.ExecContext(s.Context(), query, args...)
			s.OK(err)
		}
		run(begin)
		run(s.Env.SQL(`UPDATE {rowlock} SET note = 'written' WHERE {key} = ?`), []byte("key"))
		for _, p := range prepare {
			run(p)
		}
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // the coordinator has gone
		decided := false
		decide := func() {
			if !decided {
				decided = true
				_, err := s.Env.DB.ExecContext(context.Background(), end)
				s.OK(err)
			}
		}
		defer decide()
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		waits := servertest.Aside(func() error { _, err := c.Lock(ctx, "key"); return err })
		for {
			e := answered(s, evicted)
			if e.err != nil && strings.Contains(e.err.Error(), want) {
				break
			}
		}
		cancel()
		err = <-waits
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(log.String(), "prepared transaction") {
			s.Errorf("the caller is told %v, and the log %s", err, log)
		}
		decide()
		_, err = c.Lock(s.Context(), "key")
		s.OK(err)
	})
}
