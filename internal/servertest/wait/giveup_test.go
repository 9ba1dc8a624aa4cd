package wait

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"go.uber.org/goleak"
)

// A call that is canceled while it waits leaves no ticket, no goroutine and no held key.
func TestAWaiterThatGivesUpLeavesNothing(t *testing.T) {
	servertest.InTurn(t, func(s *servertest.Scene) {
		for _, m := range servertest.Modes {
			s.Part(m.String(), func(s *servertest.Scene) {
				l := s.Take(s.Client(servertest.WithTTL(servertest.LongTTL), m.Set), "given up")
				before := goleak.IgnoreCurrent()
				s.Part("all", func(s *servertest.Scene) { giveUpTogether(s, m) })
				if err := goleak.Find(before); err != nil {
					s.Error(err)
				}
				s.OK(l.Unlock(s.Context()))
				wantUntouched(s, "given up", l.Token())
			})
		}
	})
}

// giveUpTogether starts waiters for a held key, and cancels them one by one.
func giveUpTogether(s *servertest.Scene, m servertest.Mode) {
	s.Helper()
	c := s.Client(servertest.WithTTL(servertest.LongTTL), m.Set)
	type leaver struct {
		cancel context.CancelFunc
		end    <-chan got
	}
	var leavers []leaver
	for range 10 {
		ctx, cancel := context.WithCancel(s.Context())
		leavers = append(leavers, leaver{cancel, waits(s, ctx, c, "given up")})
	}
	if n := tickets(s); m.Fair && n != 10 {
		s.Errorf("%d tickets of 10 waiters", n)
	}
	for _, i := range rand.Perm(len(leavers)) {
		leavers[i].cancel()
		g := servertest.Await(s, servertest.Promptly, leavers[i].end, "the canceled call")
		s.WantErr(g.err, context.Canceled)
		s.WantErr(g.err, rowlock.ErrHeld)
	}
	s.Eventually("no ticket to be left", func() bool { return tickets(s) == 0 })
}

// wantUntouched fails the test unless a key is free and had no grant after token.
func wantUntouched(s *servertest.Scene, key string, token rowlock.Token) {
	s.Helper()
	l, err := s.Client().TryLock(s.Context(), key)
	s.OK(err)
	if l.Token() != token+1 {
		s.Errorf("the next token is %d after %d", l.Token(), token)
	}
	s.OK(l.Unlock(s.Context()))
}

// Calls are canceled at any moment around their grant, in the holder's process and in another. No
// key is granted twice, and nothing is left: no held key that would block all for five minutes,
// no ticket that would be served.
func TestGivingUpAtTheGrantLeavesNothing(t *testing.T) {
	rounds := servertest.FromEnvironment("ROWLOCK_WAIT_GIVEUPS", 60)
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		clients := []*rowlock.Client{
			s.Client(m.Set, servertest.WithTTL(servertest.LongTTL),
				servertest.WithPoll(servertest.ChildPoll)),
			s.Client(m.Set, servertest.WithTTL(servertest.LongTTL),
				servertest.WithPoll(servertest.ChildPoll)),
		}
		var tokens grantLog
		for i := range rounds {
			giveUpRound(s, clients, clients[i%2], &tokens)
		}
		if !slices.IsSorted(tokens.all) ||
			len(slices.Compact(slices.Clone(tokens.all))) != len(tokens.all) {
			s.Errorf("tokens in the order of their grants: %v", tokens.all)
		}
		s.Within(servertest.FreeSoon, "the next grant",
			func() { s.OK(s.Take(clients[0], "fickle").Unlock(s.Context())) })
		s.Eventually("no ticket to be left", func() bool { return tickets(s) == 0 })
		// A late grant to a waiter that has left is released when that is known; the lease would
		// last for LongTTL.
		s.Eventually("every key to be free", func() bool {
			return s.Number(
				`SELECT count(*) FROM {rowlock} WHERE owner IS NOT NULL AND expires_at > {now}`) == 0
		})
		s.Logf("%d of %d waiters gave up in time", 5*rounds-len(tokens.all), 4*rounds)
	})
}

// grantLog is the tokens of the holders, noted while they held the key.
type grantLog struct {
	mu  sync.Mutex
	all []rowlock.Token
}

func (g *grantLog) note(l *rowlock.Lock) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, l.Token())
}

// giveUpRound starts two waiters in each client for a key, and cancels them at about the time of
// its release.
func giveUpRound(s *servertest.Scene, clients []*rowlock.Client, holder *rowlock.Client,
	tokens *grantLog,
) {
	s.Helper()
	l := s.Take(holder, "fickle")
	tokens.note(l)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range 4 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(s.Context(), rand.N(16*time.Millisecond))
			defer cancel()
			l, err := clients[i%2].Lock(ctx, "fickle")
			if err != nil {
				if ctx.Err() == nil {
					s.Error(err)
				}
				return
			}
			tokens.note(l)
			if err := l.Unlock(s.Context()); err != nil {
				s.Error(err)
			}
		})
	}
	s.Elapse(rand.N(8 * time.Millisecond))
	s.OK(l.Unlock(s.Context()))
}
