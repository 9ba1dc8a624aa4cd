package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// pendingMove is a mover that waits for a key.
type pendingMove struct {
	req  lease.AcquireRequest
	got  chan lease.Lease // has room for one
	left bool             // the mover no longer waits
	// unsure says that a request of the mover, or a hand-over to it, may be carried out later.
	unsure bool
}

// fits reports whether a lease is of the store, and for the cluster of the epoch, at which the
// mover waits. Another process may have moved the key meanwhile. A lease of the other store would
// be of no use to the mover, and the mover would release it in the wrong store.
func (m *pendingMove) fits(l lease.Lease) bool {
	if m.req.Epoch == 0 {
		return !isAway(l.Token)
	}
	return lease.Epoch(l.Token) == m.req.Epoch
}

// pendingMoves are the movers that wait for a key in this process. A holder in this process hands
// its key to the mover, because a mover that only polls may never find a hot key free.
type pendingMoves struct {
	timeout time.Duration // of one step: Config.MoveTimeout
	wake    func(ctx context.Context, key string)
	orphans orphans
	mu      sync.Mutex
	moves   map[string]*pendingMove
	n       atomic.Int64 // len(moves)
}

// newPendingMoves returns movers none of which waits. wake is called with a key that a mover has
// left, so that other waiters poll it.
func newPendingMoves(timeout time.Duration, wake func(ctx context.Context, key string)) *pendingMoves {
	return &pendingMoves{timeout: timeout, wake: wake, moves: make(map[string]*pendingMove)}
}

func (p *pendingMoves) any() bool { return p.n.Load() > 0 }

// of returns the mover that waits for a lease, or nil.
func (p *pendingMoves) of(l lease.Lease) *pendingMove {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.moves[l.Key]; m != nil && m.fits(l) {
		return m
	}
	return nil
}

func (p *pendingMoves) add(m *pendingMove) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moves[m.req.Key] != nil {
		return fmt.Errorf("rowlock: bridge: this process is moving %q already", m.req.Key)
	}
	p.moves[m.req.Key] = m
	p.n.Add(1)
	return nil
}

func (p *pendingMoves) remove(m *pendingMove) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.moves, m.req.Key)
	p.n.Add(-1)
}

// leave notes that m has no use for its key any more, and reports whether it may be granted it
// later.
func (p *pendingMoves) leave(m *pendingMove) (unsure bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.left = true
	return m.unsure
}

// doubt notes that m may be granted its key later, and reports whether the mover has left.
func (p *pendingMoves) doubt(m *pendingMove) (left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.unsure = true
	return m.left
}

// deliver gives a mover the lease it was handed, and reports whether the mover still waits.
func (p *pendingMoves) deliver(m *pendingMove, l lease.Lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case m.got <- l:
	default: // it has the lease already
	}
	return !m.left
}

// side is one of the two stores, as far as it takes leases back.
type side interface {
	lease.Store
	lease.Passer
}

// handOver hands a lease to its mover instead of releasing it. Gone says that the caller no longer
// held it.
func (p *pendingMoves) handOver(ctx context.Context, at side, l lease.Lease) lease.Released {
	m := p.of(l)
	if m == nil || l.Token == 0 {
		return releaseOne(ctx, at, l)
	}
	answers, err := answered(ctx, []lease.HandOver{{From: l, To: m.req}}, at.HandOver)
	if isUnsure(answers, err) && p.doubt(m) {
		p.orphans.add(m.req)
	}
	switch {
	case err != nil:
		return lease.Released{Err: err}
	case answers[0].Err != nil:
		return lease.Released{Err: answers[0].Err}
	case !answers[0].Granted:
		return releaseOne(ctx, at, l) // gone, or this epoch has no token left
	}
	given := lease.Lease{Key: l.Key, Owner: m.req.Owner, Token: answers[0].Token}
	if !p.deliver(m, given) {
		p.giveUp(at, given, m)
	}
	return lease.Released{}
}

func releaseOne(ctx context.Context, at lease.Store, l lease.Lease) lease.Released {
	answers, err := at.Release(ctx, []lease.Lease{l})
	if err == nil && len(answers) == 1 {
		return answers[0]
	}
	return lease.Released{Err: oneline.Join(lease.ErrUnknown, err)}
}

// firstStep acquires the key at store as any client does, and carries out do, the step that cannot
// be undone. If do fails or changes nothing, firstStep releases the lease.
func (p *pendingMoves) firstStep(
	ctx context.Context,
	store lease.Store,
	key string,
	epoch int64,
	do func(lease.Lease) (ok bool, err error),
) error {
	m := &pendingMove{
		req: lease.AcquireRequest{
			Key: key, Owner: lease.NewOwner(), TTL: p.timeout + min(p.timeout, math.MaxInt64-p.timeout),
			Note: "rowlock bridge: about to move", Epoch: epoch,
		},
		got: make(chan lease.Lease, 1),
	}
	if err := p.add(m); err != nil {
		return err
	}
	l, err := p.poll(ctx, store, m)
	if err != nil {
		p.giveUp(store, lease.Lease{Key: key, Owner: m.req.Owner}, m) // what it may have been granted
		return err
	}
	ok, err := do(l)
	if err == nil && ok {
		return nil
	}
	p.giveUp(store, l, m) // harmless if the step was carried out: the key then has no owner
	if err == nil {
		err = fmt.Errorf("%w: the mover's lease expired", lease.ErrLost)
	}
	return err
}

// poll asks for the key, or takes it from its holder, until ctx ends. Then no holder hands it to m.
func (p *pendingMoves) poll(
	ctx context.Context, store lease.Store, m *pendingMove,
) (lease.Lease, error) {
	defer p.remove(m) // also if a driver panics
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		answers, err := store.Acquire(ctx, []lease.AcquireRequest{m.req})
		if isUnsure(answers, err) {
			p.doubt(m)
		}
		if err == nil && len(answers) == 1 {
			err = answers[0].Err
		}
		if err != nil {
			return lease.Lease{}, err
		}
		if len(answers) == 1 && answers[0].Granted {
			return lease.Lease{Key: m.req.Key, Owner: m.req.Owner, Token: answers[0].Token}, nil
		}
		select {
		case l := <-m.got:
			return l, nil
		case <-ctx.Done():
			return lease.Lease{}, fmt.Errorf("rowlock: bridge: the mover was not granted %q in time: %w", m.req.Key, ctx.Err())
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// giveUp releases what a mover has or may have been granted. If that fails, or the mover may be
// granted the key later, it is tried again behind the mover's back.
func (p *pendingMoves) giveUp(store lease.Store, l lease.Lease, m *pendingMove) {
	unsure := p.leave(m) // first: what is delivered after it is released where it is delivered
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	if released := releaseOne(ctx, store, l); released.Err != nil || unsure {
		p.orphans.add(m.req)
	}
	p.wake(ctx, l.Key)
}

// isUnsure reports whether a request may be granted later.
func isUnsure(answers []lease.Acquired, err error) bool {
	return errors.Is(err, lease.ErrUnknown) || slices.ContainsFunc(answers, func(a lease.Acquired) bool {
		return a.Unknown || errors.Is(a.Err, lease.ErrUnknown)
	})
}
