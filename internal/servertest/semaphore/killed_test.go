package semaphore

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/semaphore"
)

const (
	ttl   = 800 * time.Millisecond
	slack = 5 * time.Second // of a machine that has other work
)

// counter counts the slots that are held, in one statement, and compares with what it counted
// before.
type counter struct {
	s     *servertest.Scene
	locks *rowlock.Client
	limit int // in force since before the last count
	last  int
	most  int
}

// count fails the test if a slot was granted although as many as the limit were held. While more
// are held than a limit that was made smaller, they only become fewer.
func (c *counter) count() int {
	c.s.Helper()
	rows, err := c.locks.Inspect(c.s.Context(), lease.Filter{Prefix: "semaphore/s/0", Held: true})
	c.s.OK(err)
	n := len(rows)
	if n > c.limit && n > c.last {
		c.s.Errorf("%d slots are held after %d, under a limit of %d", n, c.last, c.limit)
	}
	c.last, c.most = n, max(c.most, n)
	return n
}

func (c *counter) resize(sem *semaphore.Semaphore, limit int) {
	c.s.Helper()
	c.s.OK(sem.Resize(c.s.Context(), limit))
	c.limit, c.last = limit, semaphore.Max // the next count is the first under this limit
	c.count()
}

// Processes that take and give back slots are killed, or stopped for longer than their leases last,
// and the limit is changed, at random.
func TestNoMoreSlotsAreHeldThanTheLimitWhateverIsKilledOrStopped(t *testing.T) {
	const children = 4
	seconds := servertest.FromEnvironment("ROWLOCK_SEMAPHORE_SECONDS", 4)
	for _, m := range []servertest.Mode{{}, {Fair: true}} {
		order := "none"
		if m.Fair {
			order = "in order"
		}
		t.Run(m.String(), func(t *testing.T) {
			servertest.Each(t, func(s *servertest.Scene) {
				locks := s.Client(m.Set)
				sem, err := semaphore.New(locks, "s", 3)
				s.OK(err)
				_, err = sem.Limit(s.Context())
				s.OK(err)
				c := &counter{s: s, locks: locks, limit: 3}
				join := func() *servertest.Child {
					child := s.ChildIn(m, "work", order, ttl)
					child.Send(strconv.Itoa(c.limit))
					child.Expect("joined")
					return child
				}
				var all [children]*servertest.Child
				for i := range all {
					all[i] = join()
				}
				var stopped *servertest.Child
				// A process that is stopped may have the write lock of SQLite's file.
				unlockFile := func() {
					if s.Is("sqlite") && stopped != nil {
						stopped.Resume()
						stopped = nil
					}
				}
				kills, stops, changes := 0, 0, 0
				// Beside other work the processes may take most of that time to start.
				going := func(began time.Time) bool {
					took := time.Since(began)
					return took < time.Duration(seconds)*time.Second || c.most < 2 && took < servertest.Patience
				}
				for began := time.Now(); going(began); {
					for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); {
						c.count()
					}
					switch i := rand.IntN(children); rand.IntN(6) {
					case 0, 1:
						if all[i] == stopped {
							stopped = nil
						}
						all[i].Kill()
						unlockFile()
						all[i] = join()
						kills++
					case 2:
						if stopped == nil {
							stopped = all[i]
							stopped.Pause()
							stops++
						} else {
							stopped.Resume()
							stopped = nil
						}
					default:
						unlockFile()
						c.resize(sem, 1+rand.IntN(5))
						changes++
					}
				}
				s.Logf("%d were held at most; %d kills, %d stops, %d changes", c.most, kills, stops, changes)
				if c.most < 2 {
					s.Error("this shows nothing")
				}
			})
		})
	}
}

// A process that holds all slots is killed after the limit was made smaller: as many as the new
// limit are granted when its leases end, and not before.
func TestTheSlotsOfAKilledProcessAreGrantedAgainUnderASmallerLimit(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		const ttl = 3 * time.Second // a shorter lease is lost by a process that gets no turn
		child := s.Child("hold", "none", ttl)
		child.Send("5")
		child.Send("5")
		child.Expect("holds")
		locks := s.Client(servertest.WithTTL(time.Minute))
		sem, err := semaphore.New(locks, "s", 5)
		s.OK(err)
		s.OK(sem.Resize(s.Context(), 2))
		_, err = sem.TryAcquire(s.Context(), 1)
		s.WantErr(err, rowlock.ErrHeld)
		child.Kill()
		s.Within(ttl+slack, "the slots", func() {
			p, err := sem.Acquire(s.Context(), 2)
			s.OK(err)
			_, err = sem.TryAcquire(s.Context(), 1)
			s.WantErr(err, rowlock.ErrHeld)
			s.OK(p.Release(s.Context()))
		})
	})
}

// A holder whose lease has expired and who is in a fenced transaction still counts.
func TestAFencedSlotCountsAfterItsLeaseHasExpired(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		locks := s.Client(servertest.WithTTL(time.Minute))
		sem, err := semaphore.New(locks, "s", 2)
		s.OK(err)
		p, err := sem.Acquire(s.Context(), 2)
		s.OK(err)
		s.OK(sem.Resize(s.Context(), 1))
		tx, err := s.Env.DB.BeginTx(s.Context(), nil)
		s.OK(err)
		defer func() { _ = tx.Rollback() }()
		above := p.Slots()[1].Lock
		s.Env.Expire(s, above.Key())
		s.OK(above.Fence(s.Context(), tx))
		s.OK(p.Slots()[0].Lock.Unlock(s.Context()))
		other := s.ClientOn(s.Env.Pool(s), servertest.WithTTL(time.Minute))
		again, err := semaphore.New(other, "s", 1)
		s.OK(err)
		_, err = again.TryAcquire(s.Context(), 1)
		s.WantErr(err, rowlock.ErrHeld)
		s.OK(tx.Commit())
		if err := p.Release(s.Context()); !errors.Is(err, rowlock.ErrLost) {
			s.OK(err)
		}
	})
}
