package rowlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/internal/waitq"
	"github.com/rowlockdb/rowlock/lease"
)

// grant is a key that was handed over: to which request, with which answer, and since when it counts.
type grant struct {
	req    lease.AcquireRequest
	answer lease.Acquired
	sent   time.Time
}

func (c *Client) startWaiting() {
	c.lines = waitq.New[request, grant]()
	c.runs.Most, c.runs.For = c.cfg.HandOvers, c.cfg.PollMax
	c.poller.Min, c.poller.Max = c.cfg.PollMin, c.cfg.PollMax
	c.poller.Wanted = func(key string) bool { return c.lines.Len(key) > 0 }
	c.poller.Ask, c.poller.Seen = c.look, c.seen
	c.poller.Start()
	c.hints = startHints(c)
}

// wait is one call of Lock on its way to the lock. It is a state machine: it bids when it is first or is called, and otherwise
// stands in its line, where it costs nothing.
type wait struct {
	c     *Client
	w     *waitq.Waiter[request, grant]
	began time.Time
	seen  error // of the last look: who has the key
	shown Waiting

	returned bool // and did not panic
}

func (c *Client) wait(ctx context.Context, key string, r request) (*Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rowlock: lock %q: %w", key, err)
	}
	s := &wait{c: c, began: time.Now()}
	bid := false
	s.w, bid = c.lines.Join(key, r, r.onWait != nil || c.cfg.Hooks.Waiting != nil)
	defer s.gone()
	l, err := s.run(ctx, bid)
	s.returned = true
	return l, err
}

func (s *wait) run(ctx context.Context, bid bool) (*Lock, error) {
	if bid {
		if err := s.makeRoom(ctx); err != nil {
			return s.leave(ctx, err)
		}
		bid = !s.c.yields(s.w)
	}
	for {
		if bid {
			if l, done, err := s.bid(ctx); done {
				return l, err
			}
		}
		turn, err := s.stand(ctx)
		switch {
		case err != nil:
			return s.leave(ctx, err)
		case turn.Given:
			return s.take(ctx, turn.Grant)
		}
		bid = true
	}
}

// bid asks the store. done says that there is no more to wait for.
func (s *wait) bid(ctx context.Context) (l *Lock, done bool, err error) {
	l, err = s.c.attempt(ctx, s.w.Key, s.w.Want, s.began)
	if err == nil {
		if s.c.lines.Got(s.w) {
			s.c.watchOwn(s.w.Key, s.w.Want)
		}
		return l, true, nil
	}
	if ctx.Err() != nil && s.seen != nil {
		err = join(s.seen, err, ctx.Err()) // the wait was cut short while it looked: what it saw before still stands
	} else if passing(err) {
		s.seen = err
		s.c.watch(s.w.Key, sightOf(err))
		s.c.lines.Stay(s.w)
		s.c.lines.Tell(s.w.Key)
		return nil, false, nil
	}
	l, err = s.leave(ctx, err)
	return l, true, err
}

// stand waits to be called.
func (s *wait) stand(ctx context.Context) (turn waitq.Turn[grant], err error) {
	for {
		s.show()
		select {
		case turn = <-s.w.Turn:
			return turn, nil
		case <-s.w.News: // nil, and never, unless somebody looks
		case <-ctx.Done():
			return turn, join(s.holder(), ctx.Err())
		case <-s.c.closed:
			return turn, fmt.Errorf("%w: lock %q", lease.ErrClosed, s.w.Key)
		}
	}
}

// leave ends the wait with err, unless the key was handed over at this very moment: it is worth more than the reason to leave.
func (s *wait) leave(ctx context.Context, err error) (*Lock, error) {
	if turn := s.c.lines.Leave(s.w); turn.Given {
		return s.take(ctx, turn.Grant)
	}
	return nil, err
}

// gone takes a call out of its line that has not returned, because a panic in the caller's hook has ended it: called or given the key, it
// would answer no more, and all behind it would wait for it.
func (s *wait) gone() {
	if s.returned {
		return
	}
	if turn := s.c.lines.Leave(s.w); turn.Given {
		s.c.janitor.cleanUp(s.w.Key, turn.Grant.req.Owner)
	}
}

// take makes a lock of what was handed over.
func (s *wait) take(ctx context.Context, g grant) (*Lock, error) {
	l, err := s.c.granted(ctx, g.req, g.answer, s.w.Want, g.sent, s.began)
	if err == nil && s.c.lines.Len(s.w.Key) > 0 {
		s.c.watchOwn(s.w.Key, s.w.Want)
	}
	return l, err
}

// holder is what is known of who has the key.
func (s *wait) holder() error {
	if s.seen != nil && !errors.Is(s.seen, lease.ErrHeld) {
		return s.seen
	}
	last := s.c.poller.Last(s.w.Key)
	return &HeldError{Key: s.w.Key, Note: last.Note, Remaining: max(0, last.Remaining)}
}

// show tells who looks where it stands, when that has changed.
func (s *wait) show() {
	if s.w.News == nil {
		return
	}
	last := s.c.poller.Last(s.w.Key)
	s.shown = s.c.show(s.w.Key, s.w.Want, s.shown, Waiting{Ahead: s.c.lines.Ahead(s.w), Holder: last.Note, Remaining: last.Remaining}, s.began)
}

// show calls those who want to see where a wait stands if that is news, and returns what was shown last.
func (c *Client) show(key string, r request, last, now Waiting, began time.Time) Waiting {
	if last.Since > 0 && now.Ahead == last.Ahead && now.Holder == last.Holder {
		return last
	}
	now.Remaining, now.Since = max(0, now.Remaining), max(1, time.Since(began))
	if hook := c.cfg.Hooks.Waiting; hook != nil {
		hook(key, now)
	}
	if r.onWait != nil {
		r.onWait(now)
	}
	return now
}

// makeRoom lets others bid first if this client has had the key for long enough and somebody else wants it.
func (s *wait) makeRoom(ctx context.Context) error {
	if !s.c.runs.Over(s.w.Key, s.began) || !s.c.isAwaited(ctx, s.w.Key) {
		return nil
	}
	if rest(ctx, s.c.room()) {
		return nil
	}
	return join(s.holder(), ctx.Err())
}

// room is how long a key is left to others: their pollers look every PollMin, a tenth more or less, when it changes hands often.
func (c *Client) room() time.Duration { return c.cfg.PollMin * 3 / 2 }

func sightOf(err error) waitq.Sight {
	var held *HeldError
	if errors.As(err, &held) {
		return waitq.Sight{Remaining: held.Remaining, Note: held.Note}
	}
	return waitq.Sight{}
}

// watchOwn has the poller look now and then at a key that this client holds itself: it will hear of its release sooner.
func (c *Client) watchOwn(key string, r request) {
	c.poller.Own(key, waitq.Sight{Note: r.note, Remaining: r.ttl})
	c.lines.Tell(key)
}

// look is the poller's question. First it says what it waits for, so that a release after the look is told.
func (c *Client) look(ctx context.Context, keys []string) (map[string]waitq.Sight, error) {
	ctx, cancel := context.WithTimeout(ctx, unlockTimeout)
	defer cancel()
	c.hints.await(ctx, keys)
	records, err := c.store.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return nil, err
	}
	c.hints.count(ctx, records)
	sights := make(map[string]waitq.Sight, len(records))
	for _, r := range records {
		here := r.Home == lease.HomeTable || r.Home == lease.HomeTransaction || c.reaches(r.Home)
		sights[r.Key] = waitq.Sight{Free: !r.Held && here, Age: r.Age, Remaining: r.Remaining, Note: r.Note, Token: r.Token, Crowd: c.hints.crowd(r.Key)}
	}
	return sights, nil
}

func (c *Client) reaches(home int) bool {
	r, ok := seam.As[lease.Roamer](c.store)
	return ok && r.Reaches(home)
}

// seen has the first waiter of key bid if it may be free. A key that is granted all the time is bid for as it stands: to look first
// whether it is free takes as long as its holder takes to get it again.
func (c *Client) seen(key string, s waitq.Sight) {
	if s.Free || s.Fleeting && !c.hints.wakes() {
		if rest := c.precedence(key, s); rest > 0 {
			c.poller.Later(key, rest)
			return
		}
		c.lines.Call(key)
		return
	}
	c.lines.Tell(key)
}
