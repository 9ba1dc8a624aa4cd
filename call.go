package rowlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/lease"
)

// call is one call for one or more keys, and what it has got.
type call struct {
	request
	wait  bool      // for keys that are held
	began time.Time // to ask, or to wait, for what is to be got next
	holds []*hold
	made  int               // holds, those included that ended at once
	each  []context.Context // of the calls that the slots are for; nil for other locks

	key  [1]string // room for Keys and holds, because most calls lock one key
	hold [1]*hold
}

// newCall returns a call without options.
func (c *Client) newCall(wait bool, keys ...string) *call {
	got := &call{wait: wait}
	got.Keys, got.holds = append(got.key[:0], keys...), got.hold[:0]
	got.Want = queue.Want{TTL: c.cfg.TTL, Note: c.unnoted, Priority: 5}
	got.margin, got.every = c.cfg.Margin, c.cfg.RenewEvery
	got.maxHold, got.maxIdle = c.cfg.MaxHold, c.cfg.MaxIdle
	got.space, got.reentrant = c.space, c.cfg.Reentrant
	return got
}

// check refuses a call before anything is sent.
func (c *Client) check(ctx context.Context, got *call, opts []Option) error {
	if ctx == nil {
		return isnil.Context("lock", ctx)
	}
	if queue.IsClosed(c.closed) {
		return queue.Closed(got.Keys)
	}
	var err error
	if len(opts) > 0 {
		err = got.apply(opts)
	}
	for i, key := range got.Keys {
		if bad := lease.CheckKey(key); bad != nil {
			return bad
		}
		if got.space != nil {
			got.Keys[i] = got.space.Full(key)
			if bad := lease.CheckKey(got.Keys[i]); bad != nil {
				return bad
			}
		}
	}
	if c.cfg.Hooks.Waiting != nil || got.onWait != nil {
		got.Want.Show = c.show(ctx, got.onWait)
	}
	if err == nil && got.Want.Shared {
		err = c.store.Shares()
	}
	return err
}

// show is what a waiting call tells its position to.
func (c *Client) show(ctx context.Context, onWait func(Waiting)) func(string, queue.Position) {
	hook := c.cfg.Hooks.Waiting
	return func(key string, p queue.Position) {
		if hook != nil {
			hook(ctx, key, Waiting(p))
		}
		if onWait != nil {
			onWait(Waiting(p))
		}
	}
}

// enter has the call count in its namespace, which most calls have not, for as many locks as it is
// for.
func (got *call) enter(locks int) error {
	err := got.space.Hold(locks)
	if err == nil && got.wait {
		if err = got.space.Wait(); err != nil {
			got.space.Free(locks)
		}
	}
	return err
}

// leave has only those that were made count, until they end.
func (got *call) leave(locks int) {
	if got.wait {
		got.space.Go()
	}
	got.space.Free(locks - got.made)
}

// eachOnce returns the keys in order, each once, or an error if there are none or too many.
func eachOnce(keys []string, how, cure string) ([]string, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	switch n := len(keys); {
	case n == 0:
		return nil, fmt.Errorf("%w: no keys to lock; name at least one", lease.ErrConfig)
	case n > maxTogether:
		return nil, fmt.Errorf("%w: %d keys to lock %s; at most %d are allowed: %s",
			lease.ErrConfig, n, how, maxTogether, cure)
	}
	return keys, nil
}

// maxTogether is how many keys can be locked together: as many as fit into one statement.
const maxTogether = 512

// enter returns another handle of the hold, with the values of ctx. It returns nil without a hold,
// or if it is over.
func (h *hold) enter(ctx context.Context, got *call) (*Lock, error) {
	if h == nil {
		return nil, nil
	}
	if err := h.lockAnswered(ctx); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	switch {
	case h.phase != live:
		return nil, nil
	case h.lease.Shared && !got.Want.Shared:
		return nil, fmt.Errorf("%w: this call's ctx shares %q with token %d, and two readers that did so "+
			"would wait for each other: unlock it first, or Lock and then Downgrade",
			ErrUpgrade, h.lease.Key, h.lease.Token)
	case !got.reentrant:
		return nil, &DeadlockError{Key: h.lease.Key, Token: h.lease.Token, Where: h.where()}
	}
	if err := h.differs(&got.request); err != nil {
		return nil, err
	}
	n := &nested{key: got.space.Own(h.lease.Key)}
	n.ctx, n.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if h.nested == nil {
		h.nested = make(map[*nested]struct{})
	}
	h.nested[n] = struct{}{}
	h.handles++
	return newLock(h, n), nil
}

// differs is why a Reentrant call that has named options cannot share this lock, or nil.
func (h *hold) differs(r *request) error {
	if r.given == 0 {
		return nil
	}
	maxHold := time.Duration(0)
	if !h.lease.Until.IsZero() {
		maxHold = h.lease.Until.Sub(h.since())
	}
	for _, o := range [...]struct {
		given       given
		name        string
		first, this time.Duration
	}{
		{givenTTL, "TTL", h.lease.TTL, r.Want.TTL},
		{givenNoRenew, "the RenewEvery of NoRenew", h.lease.Every, r.every},
		{givenMaxHold, "MaxHold", maxHold, r.maxHold},
		{givenMinHold, "MinHold", h.minHold, r.minHold},
		{givenMaxIdle, "MaxIdle", h.maxIdle, r.maxIdle},
	} {
		if r.given&o.given != 0 && o.first != o.this {
			return fmt.Errorf("%w: %s (%s) of a Reentrant call differs from that of the lock on %q "+
				"that its ctx holds (%s): give the same, or leave it out",
				lease.ErrConfig, o.name, orNone(o.this), h.lease.Key, orNone(o.first))
		}
	}
	return nil
}

// orNone is how an error shows a time of which 0 means none.
func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// reenter returns handles of the locks that the calls above hold, for a call for all keys also
// beside an error, and leaves the other keys to got. Without Reentrant such a key is a deadlock:
// the call would wait for itself. A call for any of the keys gets a handle of the first that they
// hold alone, and waits for none that they hold.
func (c *Client) reenter(ctx context.Context, above *chain, got *call) ([]*Lock, error) {
	var locks []*Lock
	var rest []string
	var refused error // of the first key that cannot be waited for
	for _, key := range got.Keys {
		l, err := above.find(c.tables, key).enter(ctx, got)
		switch {
		case got.Any && (errors.Is(err, ErrUpgrade) || errors.Is(err, ErrDeadlock)):
			refused = cmp.Or(refused, err)
		case err != nil:
			return locks, err
		case l == nil:
			rest = append(rest, key)
		default:
			locks = append(locks, l)
			if got.Any {
				return locks, nil
			}
		}
	}
	if len(rest) == 0 && refused != nil {
		return nil, refused
	}
	got.Keys = rest
	return locks, nil
}
