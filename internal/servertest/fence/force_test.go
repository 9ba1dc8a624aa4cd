package fence

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// An operator who takes the key again and again, whatever its holders do, costs them work and
// nothing else: the fenced number is that of the commits that were acknowledged.
func TestForcedReleasesUnderLoadNeverLetADeposedHolderWrite(t *testing.T) {
	t.Parallel()
	servertest.Each(t, func(s *servertest.Scene) {
		table := s.Env.Dialect.Names().Prefix + "forced_number"
		s.Exec(s.Env.DB, `CREATE TABLE `+table+` (n BIGINT NOT NULL, token BIGINT NOT NULL)`)
		s.Cleanup(func() { _, _ = s.Env.DB.Exec(`DROP TABLE ` + table) })
		s.Exec(s.Env.DB, `INSERT INTO `+table+` VALUES (0, 0)`)

		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		var acknowledged, unknown, deposed, forced atomic.Int64
		enough := func() bool {
			return ctx.Err() != nil || acknowledged.Load() >= 60 && deposed.Load() >= 5 && forced.Load() >= 20
		}
		var all sync.WaitGroup
		for range 2 {
			c := s.Client()
			for range 3 {
				all.Go(func() {
					for !enough() {
						addOne(ctx, s, c, table, &acknowledged, &unknown, &deposed)
					}
				})
			}
		}
		ops := s.Client()
		all.Go(func() {
			for !enough() {
				_, err := ops.ForceRelease(ctx, "k", rowlock.Force{Reason: "under load"})
				switch {
				case err == nil:
					forced.Add(1)
				case !errors.Is(err, rowlock.ErrNotHeld) && !errors.Is(err, rowlock.ErrBusy) && ctx.Err() == nil:
					s.Errorf("force release: %v", err)
				}
			}
		})
		all.Wait()
		s.OK(ctx.Err())
		n, most := s.Number(`SELECT n FROM `+table), acknowledged.Load()+unknown.Load()
		if n < acknowledged.Load() || n > most {
			s.Errorf("%d commits were acknowledged and %d were not, and the number is %d",
				acknowledged.Load(), unknown.Load(), n)
		}
		t.Logf("%s: %d commits, %d refused after %d forced releases", s.Env.Name, n, deposed.Load(), forced.Load())
		records, err := ops.ForceReleases(context.Background(), lease.ForcedFilter{Key: "k"})
		s.OK(err)
		if int64(len(records)) < min(forced.Load(), 1000) {
			s.Errorf("%d records of %d forced releases", len(records), forced.Load())
		}
	})
}

// addOne reads and writes the number in two statements, so that two holders would lose one.
func addOne(ctx context.Context, s *servertest.Scene, c *rowlock.Client, table string,
	acknowledged, unknown, deposed *atomic.Int64,
) {
	l, err := c.Lock(ctx, "k")
	if err != nil {
		return
	}
	defer func() { _ = l.Unlock(context.Background()) }()
	tx, err := s.Env.DB.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(ctx, tx); err != nil {
		if errors.Is(err, rowlock.ErrFenced) || errors.Is(err, rowlock.ErrLost) {
			deposed.Add(1)
		}
		return
	}
	var n, token lease.Token
	if err := tx.QueryRowContext(ctx, `SELECT n, token FROM `+table).Scan(&n, &token); err != nil {
		return
	}
	if token > l.Token() {
		s.Errorf("a fence with token %d passed after token %d had written", l.Token(), token)
	}
	update := fmt.Sprintf(`UPDATE %s SET n = %d, token = %d`, table, n+1, l.Token())
	if _, err := tx.ExecContext(ctx, update); err != nil {
		return
	}
	if tx.Commit() != nil {
		unknown.Add(1)
		return
	}
	acknowledged.Add(1)
}

// The wait for the row is longer than a short lease: the answer must not be that of a database that
// hangs.
func TestAForcedReleaseOfAKeyInAFencedTransactionNamesItsSessionAndEndsItOnRequest(t *testing.T) {
	t.Parallel()
	servertest.EachServer(t, func(s *servertest.Scene) {
		const ttl = 300 * time.Millisecond
		for _, shared := range []bool{false, true} {
			key := fmt.Sprint("shared ", shared)
			c := s.Client(func(c *rowlock.Config) { c.TTL, c.EvictAfter = ttl, -1 })
			lock := c.TryLock
			if shared {
				lock = c.TryRLock
			}
			l, err := lock(s.Context(), key, rowlock.NoRenew(), rowlock.TTL(time.Minute))
			s.OK(err)
			s.Cleanup(func() { runtime.KeepAlive(l) }) // a forgotten one is released
			tx, err := s.Env.DB.BeginTx(context.Background(), nil)
			s.OK(err)
			s.OK(l.Fence(s.Context(), tx))
			_, err = c.ForceRelease(s.Context(), key, rowlock.Force{Reason: "test"})
			servertest.WantErr(s, err, rowlock.ErrBusy)
			if err == nil || !strings.Contains(err.Error(), "session ") || errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("shared %t: %v", shared, err)
			}
			_, err = tx.ExecContext(s.Context(), s.Env.SQL(`UPDATE {rowlock_floor} SET floor = floor`))
			s.OK(err) // it goes on
			_, err = c.ForceRelease(s.Context(), key, rowlock.Force{Reason: "test", Evict: true})
			s.OK(err)
			if tx.Commit() == nil {
				s.Error("the transaction of a session that was ended was committed")
			}
			_, err = s.Client().TryLock(s.Context(), key)
			s.OK(err)
		}
	})
}

// A transaction that waits for the row before the forced release does has done nothing wrong, and
// the one that has the row is found behind it.
func TestAForcedReleaseEndsTheSessionThatHasTheRowAndNoneThatWaitsForIt(t *testing.T) {
	t.Parallel()
	servertest.EachServer(t, func(s *servertest.Scene) {
		c := s.Client(func(c *rowlock.Config) { c.EvictAfter = -1 })
		l := s.Take(c, "key", rowlock.NoRenew(), rowlock.TTL(time.Minute))
		tx, err := s.Env.DB.BeginTx(context.Background(), nil)
		s.OK(err)
		s.OK(l.Fence(s.Context(), tx))
		before := s.Party(rowlock.Update)
		waited, stalled := before.Stalls(func() {
			before.Exec(`SELECT 1 FROM {rowlock} WHERE {key} = ? FOR UPDATE`, []byte("key"))
		})
		if !stalled {
			s.Fatal("the row of a fenced lock is not locked")
		}
		_, err = c.ForceRelease(s.Context(), "key", rowlock.Force{Reason: "test", Evict: true})
		s.OK(err)
		if tx.Commit() == nil {
			s.Error("the transaction of a session that was ended was committed")
		}
		servertest.Await(s, servertest.Patience, waited, "the statement that waited")
	})
}
