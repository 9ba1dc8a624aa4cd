package clustertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

const (
	racers = 6
	terms  = 30 // of each
)

// race has racers lock, seal and open one key at random, on both clients.
func race(r *rig) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	r.open("k", 1)
	s := &scene{epoch: 1}
	var wg sync.WaitGroup
	for i := range racers {
		c := []paxosbridge.Cluster{r.here, r.there}[i%2]
		wg.Go(func() {
			for n := 1; n <= terms && s.note(s.term(ctx, c, n%3 == 0)); n++ {
			}
		})
	}
	wg.Wait()
	for _, err := range s.faults {
		r.Error(err)
	}
	if want := racers * terms / 3; s.seals != want {
		r.Errorf("%d epochs were sealed, want %d", s.seals, want)
	}
}

// scene is what all racers know together. It checks each grant against those before: tokens grow,
// and no key is granted that has a holder.
type scene struct {
	mu      sync.Mutex
	epoch   int64       // the last one opened
	last    lease.Token // the last token
	holders int
	seals   int
	faults  []error
}

// note reports whether there was no error, and keeps it.
func (s *scene) note(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.faults = append(s.faults, err)
	}
	return err == nil
}

// term is one term of one holder, which the holder ends.
func (s *scene) term(ctx context.Context, c paxosbridge.Cluster, seal bool) error {
	l, err := s.acquire(ctx, c)
	if err != nil {
		return err
	}
	if err := s.hold(ctx, c, l); err != nil {
		return err
	}
	if seal {
		return s.moveOn(ctx, c, l)
	}
	_, err = c.Release(ctx, []lease.Lease{l})
	return err
}

func (s *scene) acquire(ctx context.Context, c paxosbridge.Cluster) (lease.Lease, error) {
	for ctx.Err() == nil {
		s.mu.Lock()
		q := request("k", s.epoch)
		s.mu.Unlock()
		answers, err := c.Acquire(ctx, []lease.AcquireRequest{q})
		switch {
		case err != nil:
			return lease.Lease{}, err
		case answers[0].Err != nil && !errors.Is(answers[0].Err, paxosbridge.ErrRecord):
			return lease.Lease{}, answers[0].Err
		case answers[0].Granted:
			return lease.Lease{Key: "k", Owner: q.Owner, Token: answers[0].Token}, nil
		}
		pause()
	}
	return lease.Lease{}, ctx.Err()
}

// pause lets the other racers run. Its length changes only how often racers meet, not what holds.
func pause() { time.Sleep(rand.N(time.Millisecond)) }

// hold lasts until other racers have made requests.
func (s *scene) hold(ctx context.Context, c paxosbridge.Cluster, l lease.Lease) error {
	s.mu.Lock()
	s.holders++
	if s.holders > 1 || l.Token <= s.last {
		s.faults = append(
			s.faults,
			fmt.Errorf(
				"token %d was granted after %d, with %d holders", l.Token, s.last, s.holders,
			),
		)
	}
	s.last = max(s.last, l.Token)
	s.mu.Unlock()
	pause()
	answers, err := c.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: 10 * time.Minute}})
	// Busy: another request was in the way.
	if err == nil && (answers[0].Err != nil || answers[0].Outcome == lease.Lost) {
		err = fmt.Errorf("the holder of token %d was answered %+v", l.Token, answers[0])
	}
	s.mu.Lock()
	s.holders--
	s.mu.Unlock()
	return err
}

// moveOn ends the epoch of a lease and opens the next but one, as a move out and back does.
func (s *scene) moveOn(ctx context.Context, c paxosbridge.Cluster, l lease.Lease) error {
	if ok, err := c.Seal(ctx, l); err != nil || !ok {
		return fmt.Errorf("the holder could not seal: %t, %v", ok, err)
	}
	next := lease.Epoch(l.Token) + 2
	s.mu.Lock()
	s.seals++
	s.epoch = max(s.epoch, next)
	s.mu.Unlock()
	return c.Open(ctx, "k", next)
}
