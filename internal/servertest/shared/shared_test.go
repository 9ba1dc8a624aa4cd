package shared

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

const (
	ttl   = 800 * time.Millisecond
	slack = 5 * time.Second // of a machine that has other work
)

// A reader that is killed keeps a writer out until its own lease ends, and other readers keep
// theirs.
func TestAWriterGetsTheKeyWhenTheLastReaderWasKilled(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		child := s.Child("read", "none", ttl)
		child.Send("k")
		child.Expect("shared")
		c := s.Client(servertest.WithTTL(5 * time.Second)) // it is not lost on a busy machine
		mine, err := c.RLock(s.Context(), "k")
		s.OK(err)
		s.Elapse(2 * ttl) // the child renews
		s.WantHeld(c, "k")
		child.Kill()
		s.Elapse(2 * ttl)
		s.OK(mine.Context().Err())
		s.WantHeld(c, "k")
		s.OK(mine.Unlock(s.Context()))
		s.Within(ttl+slack, "the writer's lock", func() {
			w, err := c.Lock(s.Context(), "k")
			s.OK(err)
			if w.Token() <= mine.Token() {
				s.Errorf("token %d after %d", w.Token(), mine.Token())
			}
			s.OK(w.Unlock(s.Context()))
		})
	})
}

// A reader that was stopped for longer than its lease has lost it when it goes on, and is never
// revived.
func TestAReaderThatWasStoppedHasLostItsKey(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		child := s.Child("read", "none", ttl)
		child.Send("k")
		child.Expect("shared")
		c := s.Client(servertest.WithTTL(10 * time.Second))
		child.Pause()
		ctx, cancel := context.WithTimeout(s.Context(), ttl+slack)
		defer cancel()
		w, err := c.Lock(ctx, "k")
		s.OK(err)
		child.Resume()
		s.Elapse(ttl)
		child.Send("go on")
		child.Expect("lost true")
		if w.Context().Err() != nil {
			s.Error("the writer has lost its lock to a reader")
		}
		s.OK(w.Unlock(s.Context()))
	})
}

// Under load of two processes' worth of clients, a row that writers change under their locks and
// readers read twice in one fenced transaction never changes between.
func TestFencedReadersSeeNoWriterBetween(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		table := s.Env.Dialect.Names().Prefix + "shared_data"
		s.Env.Exec(s, `CREATE TABLE `+table+` (n bigint)`)
		s.Cleanup(func() { s.Env.Exec(s, `DROP TABLE `+table) })
		s.Env.Exec(s, `INSERT INTO `+table+` VALUES (0)`)
		var reads, writes atomic.Int64
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		var all sync.WaitGroup
		for range 2 {
			c := s.Client(servertest.WithTTL(5 * time.Second))
			for range 3 {
				all.Go(func() { readers(ctx, s, c, table, &reads) })
			}
			all.Go(func() { writers(ctx, s, c, table, &writes) })
		}
		s.Elapse(3 * time.Second)
		s.Eventually("reads and writes", func() bool { return reads.Load() > 0 && writes.Load() > 0 })
		cancel()
		all.Wait()
		s.Logf("%d reads, %d writes", reads.Load(), writes.Load())
	})
}

func readers(
	ctx context.Context, s *servertest.Scene, c *rowlock.Client, table string, n *atomic.Int64,
) {
	for ctx.Err() == nil {
		err := c.DoShared(ctx, "k", func(ctx context.Context, l *rowlock.Lock) error {
			tx, err := s.Env.DB.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := l.Fence(ctx, tx); err != nil {
				return err
			}
			var first, second int64
			err = tx.QueryRowContext(ctx, `SELECT n FROM `+table).Scan(&first)
			time.Sleep(time.Millisecond)
			if err == nil {
				err = tx.QueryRowContext(ctx, `SELECT n FROM `+table).Scan(&second)
			}
			if err == nil && first != second {
				s.Errorf("a fenced reader read %d and then %d", first, second)
			}
			return err
		})
		if err == nil {
			n.Add(1)
		} else if ctx.Err() == nil && !errors.Is(err, rowlock.ErrBusy) {
			s.Errorf("reader: %v", err)
		}
	}
}

func writers(
	ctx context.Context, s *servertest.Scene, c *rowlock.Client, table string, n *atomic.Int64,
) {
	for ctx.Err() == nil {
		err := c.Do(ctx, "k", func(ctx context.Context, l *rowlock.Lock) error {
			tx, err := s.Env.DB.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := l.Fence(ctx, tx); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `UPDATE `+table+` SET n = n + 1`); err != nil {
				return err
			}
			return tx.Commit()
		})
		if err == nil {
			n.Add(1)
		} else if ctx.Err() == nil && !errors.Is(err, rowlock.ErrBusy) {
			s.Errorf("writer: %v", err)
		}
	}
}

// What a thousand readers cost, and how fast sharing is beside locking, as ratios of one run.
func TestWhatSharingCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client(servertest.WithTTL(time.Minute))
		held, err := c.RLock(s.Context(), "pair")
		s.OK(err)
		const n = 300
		pairs := func(lock func(context.Context, string, ...rowlock.Option) (*rowlock.Lock, error), key string) time.Duration {
			began := time.Now()
			for range n {
				l, err := lock(s.Context(), key)
				s.OK(err)
				s.OK(l.Unlock(s.Context()))
			}
			return time.Since(began) / n
		}
		pairs(c.Lock, "alone")
		exclusive, shared := pairs(c.Lock, "alone"), pairs(c.RLock, "pair")
		s.Logf("pair: exclusive %s, shared %s, ratio %.2f", exclusive, shared,
			float64(exclusive)/float64(shared))
		crowd := func(lock func(context.Context, string, ...rowlock.Option) (*rowlock.Lock, error), key string) time.Duration {
			began := time.Now()
			var all sync.WaitGroup
			for range 256 {
				all.Go(func() {
					for range 4 {
						l, err := lock(s.Context(), key)
						if err != nil {
							s.Error(err)
							return
						}
						_ = l.Unlock(s.Context())
					}
				})
			}
			all.Wait()
			return time.Since(began) / 1024
		}
		turns, together := crowd(c.Lock, "turns"), crowd(c.RLock, "pair")
		s.Logf("256 goroutines: turns %s, shared %s, ratio %.2f", turns, together,
			float64(turns)/float64(together))
		before := c.Stats().Statements
		var all sync.WaitGroup
		locks := make([]*rowlock.Lock, 1000)
		for i := range locks {
			all.Go(func() {
				var err error
				if locks[i], err = c.RLock(s.Context(), "pair"); err != nil {
					s.Error(err)
				}
			})
		}
		all.Wait()
		s.Logf("1000 readers of one key: %d statements", c.Stats().Statements-before)
		all = sync.WaitGroup{}
		for _, l := range locks {
			all.Go(func() { _ = l.Unlock(s.Context()) })
		}
		all.Wait()
		s.OK(held.Unlock(s.Context()))
	})
}
