package rowlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

// waitAll is one call of LockAll on its way. Of all its keys it stands in the line of one, which somebody has; called there, it bids for
// all. No key is handed over to it: that one would have to go on at once if another were held.
type waitAll struct {
	wait
	keys []string
	want request
}

func (c *Client) waitAll(ctx context.Context, keys []string, r request) (*Locks, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rowlock: lock %q: %w", keys, err)
	}
	s := &waitAll{wait: wait{c: c, began: time.Now()}, keys: keys, want: r}
	bid := s.join(s.behind())
	defer s.gone()
	l, err := s.run(ctx, bid)
	s.returned = true
	return l, err
}

func (s *waitAll) run(ctx context.Context, bid bool) (*Locks, error) {
	if bid {
		if err := s.makeRoom(ctx); err != nil {
			s.c.lines.Leave(s.w)
			return nil, err
		}
	}
	for {
		for bid {
			l, err := s.bid(ctx)
			if l != nil || err != nil {
				return l, err
			}
			bid = s.settle()
		}
		if _, err := s.stand(ctx); err != nil {
			s.c.lines.Leave(s.w)
			return nil, err
		}
		bid = true
	}
}

// behind is the first key that others wait for already, or else the first: who comes later does not bid before them.
func (s *waitAll) behind() string {
	for _, key := range s.keys {
		if s.c.lines.Len(key) > 0 {
			return key
		}
	}
	return s.keys[0]
}

func (s *waitAll) join(key string) (first bool) {
	s.w, first = s.c.lines.JoinToBid(key, s.want, s.want.onWait != nil || s.c.cfg.Hooks.Waiting != nil)
	return first
}

// bid asks the store. Neither locks nor an error say that something is to be waited for.
func (s *waitAll) bid(ctx context.Context) (*Locks, error) {
	l, err := s.c.attemptAll(ctx, s.keys, s.want, s.began)
	if err == nil {
		if s.c.lines.Got(s.w) {
			s.c.watchOwn(s.w.Key, s.want)
		}
		return l, nil
	}
	if ctx.Err() != nil && s.seen != nil {
		err = join(s.seen, err, ctx.Err()) // the wait was cut short while it looked: what it saw before still stands
	} else if passing(err) {
		s.seen = err
		return nil, nil
	}
	s.c.lines.Leave(s.w)
	return nil, err
}

// settle stays in the line of a key that is held, or goes to the line of the first that is. There it bids once more if it is the
// first: of a release in between nobody would have told it.
func (s *waitAll) settle() (bid bool) {
	first, here := inTheWay(s.seen, s.w.Key)
	if first == nil || here != nil {
		sight := waitq.Sight{} // a database that has its hands full
		if here != nil {
			sight = sightOf(here)
		}
		s.c.watch(s.w.Key, sight)
		s.c.lines.Stay(s.w)
		s.c.lines.Tell(s.w.Key)
		return false
	}
	s.c.lines.Leave(s.w)
	if s.c.lines.Len(s.w.Key) == 0 {
		s.c.hints.passOn(s.w.Key) // this process may have been woken for it, and no other
	}
	return s.join(first.Key)
}

// inTheWay returns the holder of the first key that is held, and that of key if it is.
func inTheWay(err error, key string) (first, here *HeldError) {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		errors.As(err, &first)
	} else {
		for _, e := range several.Unwrap() {
			var h *HeldError
			if errors.As(e, &h) && h.Key == key {
				here = h
			}
			if first == nil {
				first = h
			}
		}
	}
	if first != nil && first.Key == key {
		here = first
	}
	return first, here
}

// makeRoom lets others bid first if this client has had one of the keys for long enough and somebody else wants it.
func (s *waitAll) makeRoom(ctx context.Context) error {
	for _, key := range s.keys {
		if !s.c.runs.Over(key, s.began) || !s.c.isAwaited(ctx, key) {
			continue
		}
		if rest(ctx, s.c.room()) {
			return nil
		}
		return join(s.holder(), ctx.Err())
	}
	return nil
}

// lockInOrder is LockAll of a fair client: by one ticket after the other. Since all go by key order, none who waits is waited for in a circle.
func (c *Client) lockInOrder(ctx context.Context, keys []string, r request) (*Locks, error) {
	locks := make([]*Lock, 0, len(keys))
	whole := false
	defer func() {
		if !whole { // or a hook has panicked
			_ = c.unlockAll(ctx, locks, false)
		}
	}()
	for _, key := range keys {
		l, err := c.fair.wait(ctx, key, r)
		if err == nil {
			locks = append(locks, l)
			err = anyOver(locks)
		}
		if err != nil {
			return nil, err
		}
	}
	whole = true
	return c.newLocks(ctx, locks), nil
}

// anyOver is why a lock ended while others were waited for.
func anyOver(locks []*Lock) error {
	for _, l := range locks {
		if cause := context.Cause(l.ctx); cause != nil {
			return fmt.Errorf("%w: %q, while others were waited for", cause, l.held.Key)
		}
	}
	return nil
}
