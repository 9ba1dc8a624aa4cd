package wait

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// A waiter for a killed holder has the key when the lease ends, and not much later.
func TestAWaiterForAKilledHolderGetsTheKeyWhenItsLeaseEnds(t *testing.T) {
	// A shorter lease is lost by a process that gets no turn, before it is killed.
	const ttl, poll = 3 * time.Second, 50 * time.Millisecond
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		holder := s.ChildIn(m, "hold", "none", ttl)
		waiter, pulse := s.Client(m.Set, servertest.WithPoll(poll)), s.Pulse()
		holder.Send("killed")
		holder.Expect("held")
		waiting := []<-chan got{
			waits(s, s.Context(), waiter, "killed"), waits(s, s.Context(), waiter, "killed"),
		}
		stillWaits(s, ttl, waiting...) // it renews
		killed := time.Now()
		s.OK(holder.Cmd.Process.Kill())
		first, next := either(s, waiting)
		if took, limit := first.at.Sub(killed), pulse.Allow(ttl+poll+waitSlack); took > limit {
			s.Errorf("granted %s after the kill, want at most %s", took, limit)
		} else {
			s.Logf("granted %s after the kill", took.Round(time.Millisecond))
		}
		s.OK(first.l.Unlock(s.Context()))
		s.OK(granted(s, next).l.Unlock(s.Context()))
	})
}

// pairing locks and unlocks a key again and again, and says the token of each lock that it has
// unlocked.
func pairing(c *servertest.Worker) error {
	for key := c.Next(); ; {
		l, err := c.Locks.Lock(context.Background(), key)
		if err == nil {
			err = l.Unlock(context.Background())
		}
		if err != nil {
			return err
		}
		fmt.Println("child:", l.Token())
	}
}

// A process that is killed takes no release with it, although its releases wait for no disk, and no
// grant: the next token is larger than all that it was told of.
func TestAKilledProcessTakesNoReleaseWithIt(t *testing.T) {
	const ttl = time.Hour
	servertest.On(t, "sqlite", func(s *servertest.Scene) {
		locks := s.Client(servertest.WithTTL(ttl))
		for kill := range 5 {
			key := servertest.Numbered(kill)
			child := s.Child("pairs", "none", ttl)
			child.Send(key)
			var last lease.Token
			for range 20 + kill {
				last = number(s, child.Receive())
			}
			s.OK(child.Cmd.Process.Kill())
			for said := child.Receive(); said != "(nothing more)"; said = child.Receive() {
				last = number(s, said)
			}
			child.Kill()
			rows, err := locks.Inspect(s.Context(), lease.Filter{Keys: []string{key}})
			s.OK(err)
			// It may have been killed within the next lock.
			if r := rows[0]; r.Token != last && r.Token != last+1 || r.Held && r.Token == last {
				s.Errorf("unlocked with token %d, and killed: the row is %+v", last, r)
			} else if !r.Held {
				if l := s.Take(locks, key); l.Token() != r.Token+1 {
					s.Errorf("granted with token %d after %d", l.Token(), r.Token)
				}
			}
		}
	})
}

func number(s *servertest.Scene, said string) (n lease.Token) {
	s.Helper()
	s.OK(n.UnmarshalText([]byte(said)))
	return n
}
