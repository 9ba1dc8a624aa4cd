package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/opening"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// MaxName is the longest name of an election in bytes.
const MaxName = 200

// Lead is what a leader does. ctx ends when the leadership does, or when it is to end: then lead
// finishes what is under way and returns. ctx has the values of the ctx of Run, and carries the
// lock as that of rowlock.Client.Do does. Its cause is that of the ctx of Run, [ErrPreferred],
// rowlock.ErrLost, ErrMaxHold, ErrIdle, or ErrUnlocked after Client.Close.
//
// l.Token is the term, and l.Fence makes a transaction part of it. l.UnlockTx resigns in the very
// transaction that ends the work. To resign otherwise, return: after l.Unlock the next leader
// begins at once.
type Lead = func(ctx context.Context, l *rowlock.Lock) error

// Key is the key that the leader of an election holds in rowlock's table.
func Key(name string) string { return "election/" + name }

// Run makes the caller a candidate in the election of that name, and calls lead whenever it leads,
// on its own goroutine. It campaigns until ctx ends. It never returns while lead runs.
//
// It returns nil when ctx has ended. If ctx ended while the caller led, it returns the error of
// lead instead, unless that is what ended lead's ctx, joined with [ErrDrain] if lead took too long,
// and with ErrLost, ErrMaxHold or ErrIdle if the lock ended before lead returned.
//
// While ctx lasts, Run returns only permanent errors: ErrConfig, before anything was sent;
// ErrClosed after Client.Close; ErrDeadlock if ctx holds the election's key already, or a lock
// whose holder waits for it; ErrTokenExhausted; ErrUnsupported; ErrInvalidKey, if with the client's
// Namespace the key is too long. Every other failure of the database, and every
// error of a lead that ended before ctx did, goes to [OnError], and Run goes on: it asks a database
// that is away again after 100 ms to 2 s.
//
// A candidate that waits costs nothing but the share of its client's poll. One that leads costs its
// renewals, which are sent with those of the client's other locks.
func Run(ctx context.Context, locks *rowlock.Client, name string, lead Lead, opts ...Option) error {
	c, err := newCandidate(ctx, locks, name, lead, opts)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		l, err := c.campaign(ctx)
		if l == nil {
			return err
		}
		began := time.Now()
		cause, err := c.serve(ctx, l)
		if ctx.Err() != nil {
			return err
		}
		c.failed(err)
		c.rest(ctx, cause, err, time.Since(began))
	}
	return nil
}

// candidate is one call of Run.
type candidate struct {
	settings
	locks *rowlock.Client
	name  string
	lead  Lead

	away, after *backoff.ExponentialBackOff // the pauses for a database, and after lead has returned
}

func newCandidate(
	ctx context.Context, locks *rowlock.Client, name string, lead Lead, opts []Option,
) (*candidate, error) {
	if err := check("Run", ctx, locks, name); err != nil {
		return nil, err
	}
	if lead == nil {
		return nil, fmt.Errorf("%w: election %q: lead is nil; give it what the leader does",
			lease.ErrConfig, name)
	}
	c := &candidate{settings: defaults(), locks: locks, name: name, lead: lead}
	if err := opening.Apply(fmt.Sprintf("election %q", name), &c.settings, opts); err != nil {
		return nil, err
	}
	c.away = retry.Growing(100*time.Millisecond, 2*time.Second, 0.2)
	c.after = retry.Growing(c.restFor, max(longestRest, c.restFor), 0.2)
	return c, nil
}

// check refuses a call before anything is sent.
func check(what string, ctx context.Context, locks *rowlock.Client, name string) error {
	switch {
	case ctx == nil:
		return isnil.Context("election."+what, ctx)
	case locks == nil:
		return fmt.Errorf("%w: election %.24q: locks is nil; open a client with rowlock.Open",
			lease.ErrConfig, name)
	case name == "":
		return fmt.Errorf("%w: the name of an election is empty; it has 1 to %d bytes",
			lease.ErrConfig, MaxName)
	case len(name) > MaxName:
		return fmt.Errorf("%w: election %.24q…: its name has %d bytes; at most %d are allowed: "+
			"hash the long part", lease.ErrConfig, name, len(name), MaxName)
	}
	return nil
}

// campaign returns the lock of a new leadership, or no lock if ctx has ended, or with an error that
// ends Run.
func (c *candidate) campaign(ctx context.Context) (*rowlock.Lock, error) {
	for c.away.Reset(); ; {
		l, err := c.get(ctx)
		switch {
		case err == nil && ctx.Err() != nil: // a grant that raced with the end
			_ = l.UnlockNow(ctx)
			return nil, nil
		case err == nil:
			return l, nil
		case errors.Is(err, lease.ErrConfig):
			return nil, err
		case ctx.Err() != nil:
			return nil, nil
		case isFinal(err):
			return nil, fmt.Errorf("rowlock: election %q: %w", c.name, err)
		}
		c.failed(fmt.Errorf("rowlock: election %q: campaigning goes on: %w", c.name, err))
		retry.Sleep(ctx, c.away.NextBackOff())
	}
}

// get waits for the leadership.
func (c *candidate) get(ctx context.Context) (*rowlock.Lock, error) {
	switch {
	case !c.ranked:
		return c.lock(ctx)
	case c.preferred:
		return c.claim(ctx)
	}
	return c.standBack(ctx)
}

func (c *candidate) lock(ctx context.Context) (*rowlock.Lock, error) {
	return c.locks.Lock(cycle.Idle{Candidate: true}.In(ctx), Key(c.name), c.locking...)
}

// isFinal reports whether asking again cannot help.
func isFinal(err error) bool {
	return oneline.Is(err, lease.ErrClosed, lease.ErrDeadlock, lease.ErrTokenExhausted,
		lease.ErrInvalidKey, lease.ErrUnsupported)
}

// failed tells of an error that Run does not end with.
func (c *candidate) failed(err error) {
	if err != nil {
		c.report(err)
	}
}

// rest leaves the leadership to other candidates after a term. It pauses for longer the more often
// lead has failed at once. A candidate that another has replaced need not rest.
func (c *candidate) rest(ctx context.Context, cause, err error, lasted time.Duration) {
	if errors.Is(cause, rowlock.ErrLost) || errors.Is(cause, ErrPreferred) {
		return
	}
	if err == nil || lasted > c.after.MaxInterval {
		c.after.Reset()
	}
	retry.Sleep(ctx, c.after.NextBackOff())
}
