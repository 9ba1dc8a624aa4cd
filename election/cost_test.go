package election_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
)

// Many elections share the watchdog and the poller of their client: a thousand leaders renew with a
// few statements, and a thousand candidates wait with one poll.
func TestAThousandElectionsShareOneWatchdogAndOnePoller(t *testing.T) {
	n := race.Few(200, 1000)
	for _, opts := range [][]election.Option{nil, {election.Prefer(false)}} {
		synctest.Test(t, func(t *testing.T) {
			var renewals, polls calls
			store := func(c *calls) *clienttest.Script {
				s := clienttest.NewScript()
				s.OnRenew = func(ctx context.Context, r []lease.RenewRequest) ([]lease.Renewed, error) {
					renewals.add(len(r))
					return s.Store.Renew(ctx, r)
				}
				s.OnInspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
					polls.add(len(f.Keys))
					return s.Store.Inspect(ctx, f)
				}
				return s
			}
			s := store(&renewals)
			leaders, waiters := clienttest.Client(t, s, nil), clienttest.Client(t, s, nil)
			ctx, stop := context.WithCancel(t.Context())
			var runs, lead sync.WaitGroup
			lead.Add(n)
			for _, c := range []*rowlock.Client{leaders, waiters} {
				for i := range n {
					runs.Go(func() {
						if err := election.Run(ctx, c, fmt.Sprint("boss ", i),
							func(ctx context.Context, l *rowlock.Lock) error {
								if ctx.Err() == nil {
									lead.Done()
									<-ctx.Done()
								}
								return nil
							}, opts...); err != nil {
							t.Error(err)
						}
					})
				}
				lead.Wait() // before the second client begins
			}
			time.Sleep(10 * time.Second) // polls are as rare as they get
			renewals.reset()
			polls.reset()
			const seconds = 30 // each lease is renewed every 10
			time.Sleep(seconds * time.Second)
			statements, items := renewals.count()
			if each := float64(items) / float64(n); each < 2 || each > 4 {
				t.Errorf("each lease was renewed %.1f times in %d s", each, seconds)
			}
			if statements > 20 {
				t.Errorf("%d statements renew %d leaders for %d s", statements, n, seconds)
			}
			reads, keys := polls.count()
			t.Logf("in %d s: %d statements renew, %d read %d rows", seconds, statements, reads, keys)
			// The waiters' poller reads at least every PollMax, and so does that of Prefer in the
			// leaders' client, 500 keys at a time.
			if most := seconds * 5 * (1 + 2*len(opts)); reads > most {
				t.Errorf("%d statements read in %d s, want at most %d", reads, seconds, most)
			}
			stop()
			runs.Wait()
		})
	}
}

// calls counts calls of a store, and the items in them.
type calls struct {
	mu       sync.Mutex
	n, items int
}

func (c *calls) add(items int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.items += items
}

func (c *calls) count() (n, items int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, c.items
}

func (c *calls) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.items = 0, 0
}
