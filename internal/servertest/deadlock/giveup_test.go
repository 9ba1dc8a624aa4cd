package deadlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// One call of a cycle gives up at some moment, most often at about that at which the cycle is
// found. The other, which began last, must not be ended by a reading that was begun after the first
// call had returned.
func TestACallThatHasGivenUpEndsNoOther(t *testing.T) {
	rounds := servertest.FromEnvironment("ROWLOCK_DEADLOCK_ROUNDS", 4)
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		p, n, pulse := &pairs{s: s}, 25, s.Pulse()
		if s.Is("sqlite") {
			n = 8 // all writes are one after the other
		}
		p.here, _ = client(s, m)
		p.there, p.seen = client(s, m)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				for r := range rounds {
					p.round(fmt.Sprintf("pair %d, round %d", i, r))
				}
			})
		}
		all.Wait()
		s.Logf("%d of %d calls were ended, %d went on", p.ended.Load(), n*rounds, p.granted.Load())
		awaitErased(s, pulse)
	})
}

// pairs are two processes whose calls wait for each other.
type pairs struct {
	s              *servertest.Scene
	here, there    *rowlock.Client
	seen           *watched // of there
	ended, granted atomic.Int64
}

func (p *pairs) round(name string) {
	mine, err := p.here.Lock(p.s.Context(), name+" a")
	theirs, err2 := p.there.Lock(p.s.Context(), name+" b")
	if err = errors.Join(err, err2); err != nil {
		p.s.Error(err)
		return
	}
	var left atomic.Pointer[time.Time]
	var both sync.WaitGroup
	both.Go(func() {
		// The cycle is found between 1 s and 1.7 s after the other began.
		ctx, cancel := context.WithTimeout(mine.Context(), 2*apart+time.Second+rand.N(900*time.Millisecond))
		defer cancel()
		l, err := p.here.Lock(ctx, name+" b")
		now := time.Now()
		left.Store(&now)
		if err == nil { // the other was ended first
			p.unlock(l)
		} else if errors.Is(err, rowlock.ErrDeadlock) {
			p.s.Errorf("%s: the call that began first was ended: %v", name, err)
		}
		p.unlock(mine)
	})
	both.Go(func() {
		p.s.Elapse(2 * apart)
		began := time.Now()
		l, err := p.there.Lock(theirs.Context(), name+" a")
		read := p.seen.lastRead()
		if at := readAfter(err, began); at.Before(read) {
			read = at
		}
		switch gone := left.Load(); {
		case err == nil:
			p.granted.Add(1)
			p.unlock(l)
		case !errors.Is(err, rowlock.ErrDeadlock):
			p.s.Errorf("%s: %v", name, err)
		case gone != nil && read.After(*gone):
			p.s.Errorf("%s: ended by a reading of %s after the other call was gone", name, read.Sub(*gone))
		default:
			p.ended.Add(1)
		}
		p.unlock(theirs)
	})
	both.Wait()
}

// readAfter returns about when the cycle was read that err tells of: the call that it has ended
// began to wait after began, and had waited for so long by the store's clock. The client's last
// reading may be of other calls, because this one takes a while to return on a busy machine.
func readAfter(err error, began time.Time) time.Time {
	var d *rowlock.DeadlockError
	if !errors.As(err, &d) || len(d.Cycle) == 0 {
		return time.Time{}
	}
	return began.Add(d.Cycle[0].Waited)
}

// unlock does not mind an outcome that a busy machine left unknown: the client goes on releasing.
func (p *pairs) unlock(l *rowlock.Lock) {
	err := l.Unlock(context.Background())
	if err != nil && !errors.Is(err, rowlock.ErrUnknown) {
		p.s.Error(err)
	}
}
