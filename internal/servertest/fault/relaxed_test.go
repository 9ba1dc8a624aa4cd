package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/semaphore"
)

// A release need not wait for the disk. Whatever comes before or after it on a pinned connection,
// in its batch or in a session of PgBouncer's, waits: also if statements fail, replies are lost,
// and callers leave. OnlyReleasesRelax, of newFaulty, has the database look.
func TestTroubleRelaxesNothingButReleases(t *testing.T) {
	for _, fair := range []bool{false, true} {
		for _, name := range []string{"sqlite", "postgres", "pgbouncer"} {
			t.Run(fmt.Sprintf("%s, fair: %t", name, fair), func(t *testing.T) {
				t.Parallel()
				f := newFaulty(t, relaxing(t, name), func(c *rowlock.Config) { c.Fair = fair })
				calls := troubled{faulty: f, t: t}
				const n = 96
				calls.make(n)
				f.faults.Set(nil)
				if done := calls.done.Load(); done < n/4 {
					t.Errorf("only %d of %d calls got what they asked for", done, n)
				}
			})
		}
	}
}

// relaxing is a database with relaxed releases.
func relaxing(t *testing.T, name string) *testdb.Env {
	t.Helper()
	kind := testdb.Kinds[0]
	if name != "sqlite" {
		kind = testdb.Kinds[1]
	}
	if name == "pgbouncer" {
		testdb.PgBouncer.DSN(t) // skips, before there are tables
		direct := kind.Open(t)
		return direct.Behind(t, postgres.Listen(direct.Source))
	}
	return kind.Open(t)
}

// troubled makes calls over connections that break, with callers that leave.
type troubled struct {
	*faulty
	t    *testing.T
	done atomic.Int64
}

func (c *troubled) make(n int) {
	permits, err := semaphore.New(c.Client, "permits", 2)
	if err != nil {
		c.t.Fatal(err)
	}
	c.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Any(
		faultdb.Randomly(0.02, 1, faultdb.LoseReply()), faultdb.Randomly(0.02, 2, faultdb.FailBeforeSend()),
		faultdb.Randomly(0.02, 3, faultdb.Delay(20*time.Millisecond)))))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 4))
			for range n / 8 {
				if c.call(random, permits) == nil {
					c.done.Add(1)
				}
			}
		})
	}
	all.Wait()
}

// call has a caller that leaves within 100 ms in a third of all cases.
func (c *troubled) call(random *rand.Rand, permits *semaphore.Semaphore) error {
	patience := 5 * time.Second
	if random.IntN(3) == 0 {
		patience = time.Duration(random.IntN(100)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	key := servertest.Numbered(random.IntN(4))
	switch random.IntN(6) {
	case 0:
		return unlocked(c.RLock(ctx, key))
	case 1:
		p, err := permits.Acquire(ctx, 1)
		if err == nil {
			err = p.Release(context.Background())
		}
		return err
	case 2:
		return unlocked(c.LockAll(ctx, []string{key, "and one"}))
	default:
		return unlocked(c.Lock(ctx, key))
	}
}

// unlocked gives back what a call got.
func unlocked[L interface {
	Unlock(ctx context.Context) error
}](l L, err error) error {
	if err != nil {
		return err
	}
	return l.Unlock(context.Background())
}
