package bidq

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
)

// scout finds out ahead of time whether other processes wait for keys that this one has kept for
// almost as long as it may. No call waits for it, and keys that come together make one statement: a
// statement for each key, alone on a lane, took a quarter of the pairs of 64 callers with keys of
// their own.
//
// Where a release tells that no process waits, the scout is asked for nothing.
type scout struct {
	q      *Queue
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu   sync.Mutex
	keys map[string]struct{}
	busy bool
}

func (s *scout) start(q *Queue) {
	s.q, s.keys = q, make(map[string]struct{})
	s.ctx, s.cancel = context.WithCancel(context.Background())
}

// stop returns when nothing runs any more.
func (s *scout) stop() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
}

// spent reports whether other processes should get key now. It has the scout look before that.
func (q *Queue) spent(key string, now time.Time) bool {
	spent, nears := q.budget.Spent(key, now)
	if nears {
		q.scout.ask(key)
	}
	return spent
}

func (s *scout) ask(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	s.keys[key] = struct{}{}
	if !s.busy {
		s.busy = true
		s.wg.Go(s.run)
	}
}

// run looks until no key has come for a while. It lets keys gather first: an eighth of a streak, of
// which a quarter is left. So it sends at most eight statements in the time of a streak, however
// many keys there are, and keys of one statement come together the next time too.
func (s *scout) run() {
	for {
		select {
		case <-time.After(s.q.cfg.PollMax / 8):
		case <-s.ctx.Done():
		}
		keys := s.take()
		if keys == nil {
			return
		}
		s.look(keys)
	}
}

// take returns the keys that have come, or nil after it has noted that the scout ends.
func (s *scout) take() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy = len(s.keys) > 0 && s.ctx.Err() == nil; !s.busy {
		return nil
	}
	keys = slices.Sorted(maps.Keys(s.keys))
	clear(s.keys)
	return keys
}

// look begins a new streak of each key that no other process waits for. Of another key, or without
// an answer, the call that finds the streak over asks once more.
func (s *scout) look(keys []string) {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(s.ctx, seam.Timeout)
	defer cancel()
	awaited, ok := s.q.hints.EachAwaited(ctx, keys)
	for i, key := range keys {
		if ok && !awaited[i] {
			s.q.budget.Unawaited(key, sent)
		}
	}
}
