package clienttest

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// tokens are those of which a hook was told.
type tokens struct {
	mu  sync.Mutex
	all []lease.Token
}

func (s *tokens) add(token lease.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, token)
}

func (s *tokens) have(token lease.Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.all, token)
}

func (s *tokens) releasing(_ context.Context, _ string, token lease.Token) { s.add(token) }

// slow is a store whose releases return after the next holder was told of.
type slow struct {
	lease.Store
	granted chan struct{}
}

func (s slow) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	answers, err := s.Store.Release(ctx, leases)
	<-s.granted
	return answers, err
}

// A hand-over may be over before Released is told of, but not before Releasing is.
func TestReleasingIsToldBeforeTheNextHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told tokens
		s := slow{memstore.New(), make(chan struct{})}
		locks := Client(t, s, &rowlock.Config{Hooks: rowlock.Hooks{
			Releasing: told.releasing,
			Acquired: func(_ context.Context, _ string, token lease.Token, _ time.Duration) {
				if token == 2 {
					if !told.have(1) {
						t.Error("token 2 was granted, and no release of token 1 was told")
					}
					close(s.granted)
				}
			},
			Released: func(_ context.Context, _ string, token lease.Token, _ time.Duration) {
				if token == 1 {
					told.add(-token)
				}
			},
		}})
		l := Take(t, locks, "k")
		done := make(chan error)
		go func() {
			done <- locks.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error { return nil })
		}()
		synctest.Wait()
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil || !told.have(-1) {
			t.Errorf("the second lock ended with %v; Released was told: %t", err, told.have(-1))
		}
	})
}

func TestReleasingIsNotToldWhileMinHoldKeepsTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told tokens
		locks := Client(t, memstore.New(), &rowlock.Config{
			Hooks: rowlock.Hooks{Releasing: told.releasing},
		})
		l := Take(t, locks, "k", rowlock.MinHold(time.Minute))
		if err := l.Unlock(t.Context()); err != nil || told.have(1) {
			t.Errorf("Unlock returned %v; its release was told: %t, want none", err, told.have(1))
		}
		if err := l.UnlockNow(t.Context()); err != nil || !told.have(1) {
			t.Errorf("UnlockNow returned %v; its release was told: %t", err, told.have(1))
		}
	})
}

// A hook that panics, or ends its goroutine, leaves no lock that Stats counts and Released lacks.
func TestAPanicOfReleasingLeavesNothingUntold(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("hook") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told tokens
				locks := Client(t, memstore.New(), &rowlock.Config{Hooks: rowlock.Hooks{
					Releasing: func(context.Context, string, lease.Token) { end() },
					Released: func(_ context.Context, _ string, token lease.Token, _ time.Duration) {
						told.add(token)
					},
				}})
				l := Take(t, locks, "k")
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { _ = recover() }()
					_ = l.Unlock(t.Context())
				}()
				<-done
				if held := locks.Stats().Held; held != 0 || !told.have(1) {
					t.Errorf("%d locks are held; Released was told: %t", held, told.have(1))
				}
			})
		})
	}
}

func TestReleasingIsToldOfWhatCloseReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told tokens
		locks := Client(t, memstore.New(), &rowlock.Config{
			Hooks: rowlock.Hooks{Releasing: told.releasing},
		})
		Take(t, locks, "k")
		if err := locks.Close(); err != nil || !told.have(1) {
			t.Errorf("Close returned %v; the release was told: %t", err, told.have(1))
		}
	})
}
