package memstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Sweeper = (*Store)(nil)
	_ lease.Settler = (*Store)(nil)
)

// Store keeps rows in memory. Make one with [New]. It is safe for concurrent use. It needs no
// Close.
type Store struct {
	born time.Time

	mu      sync.Mutex
	rows    map[string]*row
	floors  [lease.Buckets]lease.Token
	queues  map[string]map[lease.Owner]*ticket
	intents map[string]map[lease.Owner]*intent
	tickets int64              // given out so far
	limits  map[string]limit   // by name
	forced  []lease.Forced     // in order of time
	trace   []lease.TraceEvent // in order of time
	chains  map[lease.Owner]*record
	hints
}

// New returns a store without rows.
func New() *Store {
	return &Store{
		born: time.Now(), rows: make(map[string]*row), queues: make(map[string]map[lease.Owner]*ticket),
		chains: make(map[lease.Owner]*record), limits: make(map[string]limit),
		intents: make(map[string]map[lease.Owner]*intent),
		hints:   hints{registered: make(map[string]map[lease.Owner]time.Time), listeners: make(map[*listener]struct{})},
	}
}

// row is one key's state. A row without owner is free; its expiry is then the time of the release.
type row struct {
	owner     lease.Owner
	note      string
	token     lease.Token
	placement int
	granted   time.Time
	expires   time.Time
	members   map[lease.Owner]*member // of a reader group, which is then the owner
}

// limit is a limit in force. Each Resize begins a generation.
type limit struct {
	slots      int
	generation int64
}

func (r *row) held(now time.Time) bool { return !r.owner.IsZero() && now.Before(r.until()) }

// names reports whether the row is of l's term.
func (r *row) names(l lease.Lease) bool {
	return !l.Owner.IsZero() && r.members == nil && r.owner == l.Owner && r.token == l.Token
}

var errZeroOwner = errors.New("the zero owner names no attempt; use lease.NewOwner")

// Acquire grants each free or expired key to its requester. See [lease.Store].
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return each(ctx, s, reqs, s.acquireLocked)
}

// Renew extends leases that are still owned and have not expired. See [lease.Store].
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return each(ctx, s, reqs, s.renewLocked)
}

// Release ends leases. See [lease.Store].
func (s *Store) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return each(ctx, s, leases, s.releaseLocked)
}

// each answers a batch under one lock of the mutex: all items at the same instant, in the order of
// the request.
func each[Q, A any](ctx context.Context, s *Store, items []Q, answer func(now time.Time, item Q) A) ([]A, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	answers := make([]A, len(items))
	for i, item := range items {
		answers[i] = answer(now, item)
	}
	return answers, nil
}

func (s *Store) acquireLocked(now time.Time, q lease.AcquireRequest) lease.Acquired {
	if err := q.Check(); err != nil {
		return lease.Acquired{Err: err}
	}
	r := s.rows[q.Key]
	if r != nil && r.placement != lease.PlacementTable {
		return lease.Acquired{Err: fmt.Errorf("acquire %q: %w", q.Key, lease.ErrMoved)}
	}
	if r != nil && r.held(now) {
		if r.owner == q.Owner {
			return lease.Acquired{Granted: true, Token: r.token}
		}
		return lease.Acquired{Holder: r.holder(now)}
	}
	token := s.nextLocked(q.Key, r)
	if token >= lease.MaxToken {
		return lease.Acquired{Err: fmt.Errorf("acquire %q: %w", q.Key, lease.ErrTokenExhausted)}
	}
	s.rows[q.Key] = &row{owner: q.Owner, note: q.Note, token: token, granted: now, expires: now.Add(q.TTL)}
	return lease.Acquired{Granted: true, Token: token}
}

// nextLocked returns the token after the row's. Without a row it returns the token above those of
// all removed rows of the bucket.
func (s *Store) nextLocked(key string, r *row) lease.Token {
	if r != nil {
		return r.token + 1
	}
	return s.floors[lease.Bucket(key)] + 1
}

func (s *Store) renewLocked(now time.Time, q lease.RenewRequest) lease.Renewed {
	if err := lease.CheckStoredKey(q.Key); err != nil {
		return lease.Renewed{Err: fmt.Errorf("renew: %w", err)}
	}
	clock := now.Sub(s.born)
	if q.Shared {
		return lease.Renewed{Outcome: s.renewMemberLocked(now, q), Clock: clock}
	}
	r := s.rows[q.Key]
	if r == nil || !r.names(q.Lease) || !r.held(now) {
		return lease.Renewed{Outcome: lease.Lost, Clock: clock}
	}
	r.expires = now.Add(q.TTL)
	return lease.Renewed{Outcome: lease.Extended, Clock: clock}
}

func (s *Store) releaseLocked(now time.Time, l lease.Lease) lease.Released {
	if err := lease.CheckStoredKey(l.Key); err != nil {
		return lease.Released{Err: fmt.Errorf("release: %w", err)}
	}
	if l.Shared {
		return s.releaseMemberLocked(now, l)
	}
	r := s.rows[l.Key]
	if r != nil && l.Token == 0 {
		l.Token = r.token
	}
	if r == nil || !r.names(l) {
		return lease.Released{Gone: true}
	}
	r.owner, r.note, r.expires = lease.Owner{}, "", now
	// The process that releases is unknown, so that its own registration counts too.
	return lease.Released{Awaited: s.awaitedLocked(now, l.Key, lease.Owner{})}
}

// Settle returns at once: no call runs on after its caller.
func (s *Store) Settle(context.Context) {}
