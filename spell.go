package rowlock

import (
	"context"
	"sync"
	"time"
)

// spells are contexts with a deadline that many calls share: a context and a timer for each would be a third of what an Unlock
// allocates.
type spells struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Time // when the next begins
}

// within is a context that ends unlockTimeout from now, or up to a quarter later. Nothing of ctx but its values is in it.
func (s *spells) within(ctx context.Context) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); s.ctx == nil || now.After(s.until) {
		// The one before is left to its deadline: calls may be under way in it.
		s.ctx, s.cancel = context.WithTimeout(context.Background(), unlockTimeout*5/4)
		s.until = now.Add(unlockTimeout / 4)
	}
	return spell{s.ctx, ctx}
}

// stop frees the last one's timer. No call is under way any more.
func (s *spells) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

// spell is a shared context with the values of a caller's.
type spell struct {
	context.Context
	values context.Context
}

// Value asks the shared context first, which has no values but what package context looks itself up by.
func (s spell) Value(key any) any {
	if v := s.Context.Value(key); v != nil {
		return v
	}
	return s.values.Value(key)
}
