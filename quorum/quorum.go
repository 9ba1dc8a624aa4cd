package quorum

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Store is a lease.Store over an odd number of independent stores, for rowlock.New. Close it after
// the client. It closes no member. It is safe for concurrent use.
type Store struct {
	cfg     Config
	members []*member
	need    int // how many are a majority
	tables  any
	longest atomic.Int64 // the longest TTL asked for

	calls  flights // to members, and what follows from their answers
	copies order[attempt]
	cleaners

	mu sync.Mutex // guards all bids
	// late are granted bids of which calls are still under way, or outcomes unknown. See forget.
	late  map[attempt]*bid
	ahead ahead
	swept int64 // rows that no sweep has counted yet
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Sweeper = (*Store)(nil)
	_ lease.Settler = (*Store)(nil)
)

// New returns a quorum of these stores, an odd number from 3 on, with the default Config. It sends
// nothing. An error wraps lease.ErrConfig and names the store that cannot take part.
//
// Every client of a key must have the same members. Their order should be the same too, because it
// decides which of several clients goes on if none has a majority.
func New(stores ...lease.Store) (*Store, error) { return NewWith(Config{}, stores...) }

// NewWith is New with settings.
func NewWith(cfg Config, stores ...lease.Store) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkMembers(stores); err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg, need: len(stores)/2 + 1, late: make(map[attempt]*bid), ahead: make(ahead),
	}
	s.life, s.end = context.WithCancel(context.Background())
	for i, store := range stores {
		s.members = append(s.members, newMember(i, store))
		s.tables = pair{s.tables, adapter.TablesOf(store)}
	}
	return s, nil
}

// pair makes a list that can be compared.
type pair struct{ before, last any }

// Tables returns a value that is equal for quorums of the same members in the same order.
func (s *Store) Tables() any { return s.tables }

// Close ends what the quorum does by itself: it tries once more to release what failed attempts may
// have left, up to 256 leases of each member; others end with their TTL. Beside a member that hangs
// it takes up to four times Timeout. Calls return lease.ErrClosed afterwards.
func (s *Store) Close() error {
	s.close()
	s.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	s.calls.idle(ctx)
	return nil
}

// ready refuses a call that would do nothing.
func (s *Store) ready(ctx context.Context, what string) error {
	if s.life.Err() != nil {
		return fmt.Errorf("%w: quorum: %s", lease.ErrClosed, what)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("rowlock: quorum: %s: %w", what, err)
	}
	return nil
}

// asked notes a TTL and returns the bound on one round of calls for it.
func (s *Store) asked(ttl time.Duration) time.Duration {
	if ttl <= 0 { // no lease comes of it
		return s.cfg.Timeout
	}
	for last := s.longest.Load(); int64(ttl) > last; last = s.longest.Load() {
		if s.longest.CompareAndSwap(last, int64(ttl)) {
			break
		}
	}
	return max(time.Millisecond, min(s.cfg.Timeout, ttl/3))
}

// valid is how long a lease of ttl may be relied on, from before the request that got it.
func (s *Store) valid(ttl time.Duration) time.Duration {
	return ttl - time.Duration(s.cfg.Drift*float64(ttl)) - 2*time.Millisecond
}
