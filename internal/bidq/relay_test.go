package bidq_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
)

// busy has n processes contend until they take turns.
func busy(t *testing.T, s *server, n int) (clients []*rowlock.Client, all []*contender, end func()) {
	t.Helper()
	for range n {
		clients = append(clients, s.client(t))
	}
	all, end = contend(t, "key", 0, clients...)
	time.Sleep(2 * time.Second)
	if s.queued() < n-1 {
		t.Fatalf("%d of %d processes take turns", s.queued(), n)
	}
	return clients, all, end
}

func TestProcessesGetABusyKeyInTurnsAndAsOften(t *testing.T) {
	for _, n := range []int{2, 8, 32} {
		scene(t, func(t *testing.T, s *server) {
			_, all, end := busy(t, s, n)
			defer end()
			grants, worst := during(2*time.Second, all)
			total := 0
			for _, g := range grants {
				total += g
			}
			least, most, share := slices.Min(grants), slices.Max(grants), float64(total)/float64(n)
			t.Logf("%d processes: %d pairs a second, waits of at most %s, shares of %.2f to %.2f", n,
				total/2, worst, float64(least)/share, float64(most)/share)
			if float64(least) < 0.8*share || float64(most) > 1.2*share {
				t.Errorf("shares: %v", grants)
			}
			if worst > 60*time.Millisecond {
				t.Errorf("a process waited for %s", worst)
			}
			if best := int(2 * time.Second / (2 * trip)); total < best*3/4 {
				t.Errorf("%d pairs of %d that one process could make", total, best)
			}
		})
	}
}

// Its waiters hand the key over among them, or it is the only one that wants it.
func TestAProcessAloneTakesNoTurns(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		c := s.client(t)
		for _, goroutines := range []int{1, 8} {
			_, end := contend(t, "key", 0, slices.Repeat([]*rowlock.Client{c}, goroutines)...)
			time.Sleep(5 * time.Second)
			end()
		}
		if s.asked > 0 {
			t.Errorf("it has queued %d times", s.asked)
		}
	})
}

// A process that is away after each grant leaves the key at once.
func TestAProcessThatDoesNotComeBackPassesItsTurnWithItsRelease(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		const n = 8
		var clients []*rowlock.Client
		for range n {
			clients = append(clients, s.client(t))
		}
		all, end := contend(t, "key", 5*time.Millisecond, clients...)
		defer end()
		time.Sleep(2 * time.Second)
		grants, worst := during(2*time.Second, all)
		if worst > 40*time.Millisecond {
			t.Errorf("a process waited for %s; grants: %v", worst, grants)
		}
	})
}

// The others bid as if there were no turns, until theirs come.
func TestATurnThatIsStuckLeavesTheOthersAsTheyWereWithoutTurns(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		_, all, end := busy(t, s, 8)
		defer end()
		goOn := s.stop(t)
		grants, worst := during(3*time.Second, all)
		t.Logf("grants %v, waits of at most %s", grants, worst)
		if worst > 2*pollMost {
			t.Errorf("a process waited for %s", worst)
		}
		if slices.Min(grants) < 200 {
			t.Errorf("grants: %v", grants)
		}
		goOn()
		time.Sleep(time.Second)
		if grants, worst = during(2*time.Second, all); worst > 100*time.Millisecond {
			t.Errorf("a process waited for %s after the turn had come; grants: %v", worst, grants)
		}
	})
}

// The server's queue can be taken by a stranger for good.
func TestWithoutTurnsAProcessGetsTheKeyAsBefore(t *testing.T) {
	for name, fails := range map[string]func(t *testing.T, s *server){
		"unsupported": func(_ *testing.T, s *server) { s.refuses = lease.ErrUnsupported },
		"refused":     func(_ *testing.T, s *server) { s.refuses = errors.New("too many connections") },
		"stuck":       func(t *testing.T, s *server) { _ = s.stop(t) },
	} {
		t.Run(name, func(t *testing.T) {
			if race.Enabled && name != "stuck" {
				t.Skip("the race detector watches the turn that is stuck")
			}
			scene(t, func(t *testing.T, s *server) {
				fails(t, s)
				const n = 4
				var clients []*rowlock.Client
				for range n {
					clients = append(clients, s.client(t))
				}
				all, end := contend(t, "key", 0, clients...)
				defer end()
				time.Sleep(turnWait + 5*time.Second)
				asked := s.asked
				grants, worst := during(10*time.Second, all)
				if worst > pollMost || slices.Min(grants) < 100 {
					t.Errorf("a process waited for %s; grants: %v", worst, grants)
				}
				if s.asked > asked {
					t.Errorf("they have queued %d times after %d failures", s.asked, asked)
				}
				time.Sleep(2 * time.Minute)
				if again := s.asked > asked; again == (name == "unsupported") {
					t.Errorf("they have queued %d times in two minutes", s.asked-asked)
				}
			})
		})
	}
}

func TestCloseDoesNotWaitForATurnThatDoesNotCome(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		clients, _, end := busy(t, s, 4)
		goOn := s.stop(t)
		time.Sleep(10 * time.Millisecond)
		end()
		for _, c := range clients {
			began := time.Now()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("Close took %s", took)
			}
		}
		if goOn(); s.queued() > 0 {
			t.Errorf("%d sessions queue", s.queued())
		}
	})
}

func TestALockWhoseContextEndsInTheQueueReturnsAtOnceAndPassesTheTurn(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		clients, all, end := busy(t, s, 4)
		defer end()
		c := s.client(t)
		one := new(contender)
		var unused sync.Mutex
		for range 200 { // until it takes turns too, at the latest
			if err := one.pair(t.Context(), c, "key", &unused); err != nil {
				t.Fatal(err)
			}
		}
		goOn := s.stop(t)
		ctx, cancel := context.WithCancel(t.Context()) // with a deadline, it would not wait for the turn
		time.AfterFunc(20*time.Millisecond, cancel)
		began := time.Now()
		_, err := c.Lock(ctx, "key")
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 25*time.Millisecond {
			t.Errorf("Lock ended with %v after %s", err, took)
		}
		goOn()
		time.Sleep(time.Second)
		if _, worst := during(time.Second, all); worst > 60*time.Millisecond {
			t.Errorf("one of %d waited for %s", len(clients), worst)
		}
	})
}

// A process that has held the key for long needs no turn, and those that wait for it do not queue.
func TestTheQueueEmptiesWhenTheKeyIsHeldForLong(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		clients, _, end := busy(t, s, 4)
		end()
		l, err := clients[0].Lock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		_, end = contend(t, "key", 0, clients[1:]...)
		defer end()
		time.Sleep(3 * time.Second)
		if s.queued() > 0 {
			t.Errorf("%d sessions queue", s.queued())
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAProcessWithoutTurnsIsNotStarved(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		_, _, end := busy(t, s, 4)
		defer end()
		deaf := s.client(t, func(c *rowlock.Config) { c.Hints = rowlock.HintsOff })
		all, last := contend(t, "key", 0, deaf)
		defer last()
		time.Sleep(time.Second)
		if grants, worst := during(10*time.Second, all); grants[0] < 10 {
			t.Errorf("%d grants in 10 s, waits of up to %s", grants[0], worst)
		}
	})
}
