package wlock

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// Kind is what is locked. One key must be locked as a mutex alone or as a read-write lock alone:
// servers keep one record for both.
type Kind int

// The kinds.
const (
	Mutex Kind = iota
	Write
	Read
)

func (k Kind) wire() frame.Kind { return [...]frame.Kind{frame.Mutex, frame.Writer, frame.Reader}[k] }

// MaxKey is the longest key in bytes.
const MaxKey = 32634

// Lock names a lock of a server: a key and its owner. The 128 bits of the owner stand where Java
// clients have host, thread and process, and exclude them as they exclude each other.
type Lock struct {
	Key   string
	Kind  Kind
	Owner lease.Owner
	// Token is that of the answer to release or renew. An acquisition does not send it.
	Token lease.Token
}

// Ask is what an acquisition asks for.
type Ask struct {
	Lock
	// TTL is from 1 ms to 24.8 days. The server would take others: the lock would have expired.
	TTL time.Duration
	// Weight is 1 to 10, and 0 is 1. Of those that wait for a mutex the heaviest goes first.
	Weight int
	// Late is called with what a try was granted whose caller had left. It is not called if the
	// connection ends first. Without it such a lock lasts for its TTL.
	Late func(Grant)
}

// Grant is a lock that a server says it has granted.
type Grant struct {
	Lock
	// Sent is before the server began to count the TTL.
	Sent time.Time
	// Unknown says that another try of the same call may still be carried out: the token then
	// changes, and the TTL begins anew.
	Unknown bool
}

// ErrRefused is a server's answer that another owner has the lock. It is what that server knew.
var ErrRefused = fmt.Errorf("%w: wlock", lease.ErrHeld)

// TryLock asks for a lock once. If its owner has the lock already it is granted again: the TTL
// begins anew and the token is larger, so that the token before is dead. That is also the only safe
// way to extend a lock: see the package comment.
//
// An error that wraps lease.ErrUnknown says that the lock may be granted, even later: ask again
// with the same owner and release what is granted.
func (c *Client) TryLock(ctx context.Context, a Ask) (Grant, error) {
	q, err := a.request(ctx)
	if err != nil {
		return Grant{}, err
	}
	r, err := c.ask(ctx, q, a.late())
	if err != nil {
		return Grant{Unknown: r.unknown}, err
	}
	return a.granted(r)
}

func (a *Ask) late() func(*frame.Response) {
	sent := time.Now()
	if a.Late == nil {
		return nil
	}
	return func(r *frame.Response) {
		if g, err := a.granted(reply{Response: r, sent: sent}); err == nil {
			a.Late(g)
		}
	}
}

// granted tells a grant only if the answer names this owner and a token.
func (a *Ask) granted(r reply) (Grant, error) {
	none := Grant{Unknown: r.unknown}
	switch {
	case r.Status == frame.Occupied || r.Status == frame.Wait:
		return none, fmt.Errorf("%w: %q: %s", ErrRefused, a.Key, r.Status)
	case r.Status != frame.Success:
		return none, fmt.Errorf("%w: wlock: %q: an acquisition was answered %s", lease.ErrUnknown, a.Key, r.Status)
	case r.Owner != frame.Owner(a.Owner) || r.Token <= 0:
		return none, fmt.Errorf("%w: wlock: %w: %q: granted to %x with token %d", lease.ErrUnknown,
			ErrCorrupt, a.Key, r.Owner, r.Token)
	}
	g := Grant{a.Lock, r.sent, r.unknown}
	g.Token = lease.Token(r.Token)
	return g, nil
}

func (a *Ask) request(ctx context.Context) (frame.Request, error) {
	q, err := a.Lock.request(ctx, frame.Acquire)
	if a.Weight == 0 {
		a.Weight = 1
	}
	switch {
	case err != nil:
		return q, err
	case a.Weight < 1 || a.Weight > 10:
		return q, fmt.Errorf("%w: wlock: %q: weight %d; use 1 to 10", lease.ErrConfig, a.Key, a.Weight)
	case a.Owner.IsZero():
		return q, fmt.Errorf("%w: wlock: %q: the zero owner; use lease.NewOwner", lease.ErrConfig, a.Key)
	}
	q.Weight, q.Token = int32(a.Weight), 0 // servers ignore the token
	q.Expire, err = millis(a.Key, a.TTL)
	return q, err
}

// millis refuses what a server would take for a lock that has expired already.
func millis(key string, ttl time.Duration) (int32, error) {
	ms := (ttl + time.Millisecond - 1) / time.Millisecond
	if ttl <= 0 || ms > math.MaxInt32 {
		return 0, fmt.Errorf("%w: wlock: %q: a TTL of %s; use 1ms to %s", lease.ErrConfig, key, ttl,
			math.MaxInt32*time.Millisecond)
	}
	return int32(ms), nil
}

// request refuses what is nil or no kind, and keys that servers answer so that the answer cannot
// be read.
func (l *Lock) request(ctx context.Context, of frame.Type) (q frame.Request, err error) {
	if err := has(ctx); err != nil {
		return q, err
	}
	if l.Kind < Mutex || l.Kind > Read {
		return q, fmt.Errorf("%w: wlock: %.40q: kind %d; use Mutex, Write or Read", lease.ErrConfig, l.Key, l.Kind)
	}
	q = frame.Request{Type: of, Kind: l.Kind.wire(), Key: l.Key, Owner: frame.Owner(l.Owner)}
	q.Token = int64(l.Token)
	if len(l.Key) > MaxKey {
		return q, fmt.Errorf("%w: wlock: %d bytes; %d are the most", lease.ErrInvalidKey, len(l.Key), MaxKey)
	}
	for i := range len(l.Key) {
		if l.Key[i] >= 0x80 {
			return q, fmt.Errorf("%w: wlock: %.40q: servers cannot echo what is not ASCII", lease.ErrInvalidKey, l.Key)
		}
	}
	return q, nil
}

// ReleaseLock ends a lock, if the server has it with this owner and token. freed says that it did.
// Otherwise own says that this owner has the lock with another token: a try that had no answer was
// carried out later.
func (c *Client) ReleaseLock(ctx context.Context, l Lock) (freed, own bool, err error) {
	q, err := l.request(ctx, frame.Release)
	if err != nil {
		return false, false, err
	}
	r, err := c.ask(ctx, q, nil)
	if err != nil {
		return false, false, err
	}
	// After a try without an answer, a lock that is not there is one that this call has released.
	freed = r.Status == frame.Success || r.unknown && r.Status == frame.Deleted
	return freed, r.Status == frame.TokenError, nil
}

// RenewLock sends RENEW, as Java clients do to extend a lock. It is here for tests and for programs
// that share a lock with them. Do not rely on a lock that was renewed: a server that was paused can
// give it to another owner, and a renewal can bring back a lock that was released. Use TryLock.
func (c *Client) RenewLock(ctx context.Context, l Lock, ttl time.Duration) (sent time.Time, renewed bool, err error) {
	q, err := l.request(ctx, frame.Renew)
	if err == nil {
		q.Expire, err = millis(l.Key, ttl)
	}
	if err != nil {
		return time.Time{}, false, err
	}
	r, err := c.ask(ctx, q, nil)
	return r.sent, err == nil && r.Status == frame.Success, err
}

// See returns what a server knows of a lock, which may be of the past: see the package comment. l
// needs an owner for Read alone, whose own lock it then is.
func (c *Client) See(ctx context.Context, l Lock) (found Lock, held bool, err error) {
	q, err := l.request(ctx, frame.Get)
	if err != nil {
		return l, false, err
	}
	r, err := c.ask(ctx, q, nil)
	if err != nil {
		return l, false, err
	}
	l.Owner, l.Token = lease.Owner(r.Owner), lease.Token(r.Token)
	return l, r.Status == frame.Success, nil
}
