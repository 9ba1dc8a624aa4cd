package rowlock_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock"
)

// A call that is cancelled while it waits leaves no ticket, no goroutine and no held key.
func TestWhoGivesUpLeavesNothing(t *testing.T) {
	eachScene(t, func(s *scene) {
		for _, m := range modes {
			s.part(m.String(), func(s *scene) {
				l := s.take(s.client(withTTL(faultTTL), m.set), "given up")
				before := goleak.IgnoreCurrent()
				s.part("all", func(s *scene) { s.giveUpTogether(m) })
				if err := goleak.Find(before); err != nil {
					s.Error(err)
				}
				s.ok(l.Unlock(s.Context()))
				s.wantUntouched("given up", l.Token())
			})
		}
	})
}

// giveUpTogether has some wait for a held key, and go away one by one.
func (s *scene) giveUpTogether(m mode) {
	s.Helper()
	c := s.client(withTTL(faultTTL), m.set)
	type leaver struct {
		cancel context.CancelFunc
		end    <-chan got
	}
	var leavers []leaver
	for range 10 {
		ctx, cancel := context.WithCancel(s.Context())
		leavers = append(leavers, leaver{cancel, s.waits(ctx, c, "given up")})
	}
	if n := s.tickets(); m.fair && n != 10 {
		s.Errorf("%d tickets of 10 who wait", n)
	}
	for _, i := range rand.Perm(len(leavers)) {
		leavers[i].cancel()
		g := arrives(s, faultPromptly, leavers[i].end, "the cancelled call")
		s.wantErr(g.err, context.Canceled)
		s.wantErr(g.err, rowlock.ErrHeld)
	}
	if n := s.tickets(); n != 0 {
		s.Errorf("%d tickets are left", n)
	}
}

// wantUntouched sees that a key is free, and had no grant after token.
func (s *scene) wantUntouched(key string, token int64) {
	s.Helper()
	l, err := s.client().TryLock(s.Context(), key)
	s.ok(err)
	if l.Token() != token+1 {
		s.Errorf("the next token is %d after %d", l.Token(), token)
	}
	s.ok(l.Unlock(s.Context()))
}

// Calls are cancelled at any moment around their grant, in the process of the holder and in another. Nobody is granted a key
// twice, and nothing is left: no key that would block everybody for five minutes, no ticket that would be served.
func TestGivingUpAtTheGrantLeavesNothing(t *testing.T) {
	rounds := fromEnvironment("ROWLOCK_WAIT_GIVEUPS", 60)
	eachMode(t, func(s *scene, m mode) {
		clients := []*rowlock.Client{s.client(m.set, withTTL(faultTTL), withPoll(childPoll)), s.client(m.set, withTTL(faultTTL), withPoll(childPoll))}
		var tokens grantLog
		for i := range rounds {
			s.giveUpRound(clients, clients[i%2], &tokens)
		}
		if !slices.IsSorted(tokens.all) || len(slices.Compact(slices.Clone(tokens.all))) != len(tokens.all) {
			s.Errorf("tokens in the order of their grants: %v", tokens.all)
		}
		s.quick(freeSoon, "the next grant", func() { s.ok(s.take(clients[0], "fickle").Unlock(s.Context())) })
		s.eventually("no ticket to be left", func() bool { return s.tickets() == 0 })
		// What a waiter who has gone is granted late is given back when that is known; the lease would last for faultTTL.
		s.eventually("every key to be free", func() bool {
			return s.number(`SELECT count(*) FROM {rowlock} WHERE owner IS NOT NULL AND expires_at > {now}`) == 0
		})
		s.Logf("%d of %d waiters gave up in time", 5*rounds-len(tokens.all), 4*rounds)
	})
}

// grantLog is the tokens of those who had the key, noted while they had it.
type grantLog struct {
	mu  sync.Mutex
	all []int64
}

func (g *grantLog) note(l *rowlock.Lock) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, l.Token())
}

// giveUpRound has two waiters in each client wait for a key, and go at about the time at which it comes free.
func (s *scene) giveUpRound(clients []*rowlock.Client, holder *rowlock.Client, tokens *grantLog) {
	s.Helper()
	l := s.take(holder, "fickle")
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
	s.atLeast(rand.N(8 * time.Millisecond))
	s.ok(l.Unlock(s.Context()))
}
