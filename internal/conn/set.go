package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

var (
	// ErrClosed is returned by Do on a closed set. Nothing was sent.
	ErrClosed = errors.New("connections closed")
	// ErrWithdrawn is joined with ctx.Err() when the caller left before its op was started.
	// Nothing was sent.
	ErrWithdrawn = errors.New("not sent")
	// ErrOrphaned is joined with ctx.Err() when the caller left while its op was running. The
	// op goes on.
	ErrOrphaned = errors.New("left while running")
)

// Config is what a set needs to know.
type Config[T any] struct {
	DB adapter.Pool
	// Conns is how many connections to keep at most; at least 1.
	Conns int
	// Timeout bounds one statement, or one short transaction. After it the connection is dropped.
	Timeout time.Duration
	// Setup makes the settings of a new session.
	Setup func(context.Context, *Session) error
	// Good reports whether a connection is still good on which an op has ended with this error.
	Good func(error) bool
	// Together executes ops that Merge allowed in one batch: renewals, or releases and then
	// acquires. It sets each one's Err or defers it with Again, and returns whether the
	// connection is still good. It is not called for a single op.
	Together func(ctx context.Context, s *Session, ops []*Op[T]) (good bool)
	// ReadOnly reports whether the error of an op says that the server takes no writes, as after a
	// switch-over. May be nil.
	ReadOnly func(error) bool
	// Merge is how many pending ops may be one batch; 0 and 1 mean one by one.
	Merge int
	// Gather is with how many ops for each connection that runs a batch another connection begins
	// at the latest. It begins earlier if these are half of what runs and waits. 0 means that every
	// idle connection begins at once.
	Gather int
	// Idle is for how long a connection stays open that runs nothing; 0 means a minute.
	Idle time.Duration
}

// Set is a few connections and what is pending for them.
//
// With two connections or more the first never acquires, so that an acquire that hangs on the
// network cannot delay a renewal.
type Set[T any] struct {
	cfg     Config[T]
	wg      sync.WaitGroup
	counts  counts
	redial  redial
	dropped dropped

	mu      sync.Mutex
	pending [kinds][]*Op[T]
	conns   []*pinned[T]
	idle    []*pinned[T]
	closed  bool
	ended   sync.Cond // a connection has ended what it ran
	alone   int       // how many of the pending run alone
	timed   bool      // timer runs
	timer   *time.Timer
	ager    *time.Timer
	life    context.Context // ends with Close
	end     func()
}

// Open connects every connection before it returns, so that a pool that is too small is found now
// and not at the first renewal.
func Open[T any](ctx context.Context, cfg Config[T]) (*Set[T], error) {
	s := &Set[T]{cfg: cfg, conns: make([]*pinned[T], cfg.Conns)}
	s.cfg.Idle = cmp.Or(cfg.Idle, usualIdle)
	s.ended.L = &s.mu
	var together sync.WaitGroup // one after another they took 40 round trips more
	failed := make([]error, cfg.Conns)
	for i := range s.conns {
		p := &pinned[T]{set: s, keeper: i == 0 && cfg.Conns > 1, wake: make(chan struct{}, 1)}
		s.conns[i] = p
		together.Go(func() { failed[i] = p.open(ctx) })
	}
	together.Wait()
	for i, err := range failed {
		if err != nil {
			for _, p := range s.conns {
				p.drop()
			}
			return nil, fmt.Errorf("connection %d of %d: %w", i+1, cfg.Conns, err)
		}
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.mu.Lock() // it may age at once
	defer s.mu.Unlock()
	s.ager = time.AfterFunc(s.cfg.Idle/2, s.age)
	for _, p := range s.conns {
		s.wg.Go(p.loop)
	}
	return s, nil
}

// Do runs op on the next free connection, unless Go has begun it, and returns when it has ended, or
// when ctx has. A nil error says that op.Err is the outcome. ErrClosed and ErrWithdrawn say that
// nothing was sent. ErrOrphaned says that the op goes on and its outcome stays unknown.
func (s *Set[T]) Do(ctx context.Context, op *Op[T]) error {
	if !op.begun {
		if err := ctx.Err(); err != nil {
			return oneline.Join(ErrWithdrawn, err)
		}
		if p := s.borrow(op); p != nil {
			// If the caller leaves meanwhile, its context takes the connection with it.
			defer s.giveBack(p)
			p.run(ctx, p.one[:])
			p.one[0] = nil
			return nil
		}
		if !s.Go(op) {
			return ErrClosed
		}
	}
	left := op.await(ctx)
	if left == nil {
		return nil
	}
	switch op.abandon() {
	case withdrawn:
		return oneline.Join(ErrWithdrawn, left)
	case orphaned:
		return oneline.Join(ErrOrphaned, left)
	}
	// An answer that races with cancellation wins.
	<-op.done
	return nil
}

// borrow takes an idle connection for its caller to run one op there itself: to wake the
// connection's goroutine and be woken by it would take as long as a third of the statement.
func (s *Set[T]) borrow(op *Op[T]) *pinned[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	// What comes later than ops that wait although a connection may be idle goes with them, and not
	// before.
	heldBack := s.cfg.Gather > 0 && len(s.pending[Release])+len(s.pending[Acquire]) > 0
	if s.closed || !op.Alone && (s.delays() || heldBack && op.Kind != Renew) {
		return nil
	}
	p := s.free(op.Kind, s.counts.open.Load() > 0)
	if p != nil {
		p.busy, p.running, p.merges = true, 1, !op.Alone
		p.one[0] = op
		op.state.Store(running)
	}
	// The keeper is to be ready for the next renewal: what acquires may hang by then. Only of an idle
	// one may the session be read here.
	if k := s.conns[0]; op.Kind == Renew && k.keeper && slices.Contains(s.idle, k) && k.session == nil {
		s.rouse(k)
	}
	return p
}

// giveBack makes a borrowed connection idle, or has its own goroutine go on with what has come
// meanwhile. A panic may have left a statement on the connection.
func (s *Set[T]) giveBack(p *pinned[T]) {
	if p.one[0] != nil {
		p.one[0] = nil
		p.drop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ends()
	for kind := range kinds {
		if s.closed || len(s.pending[kind]) > 0 && p.takes(kind) {
			p.wake <- struct{}{}
			return
		}
	}
	s.idle = append(s.idle, p)
}

// Go has op run and does not wait for it: Do may do so later. It reports false on a closed set.
func (s *Set[T]) Go(op *Op[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	op.begun = true
	s.pending[op.Kind] = append(s.pending[op.Kind], op)
	s.counted(op, 1)
	s.wakeFor(op.Kind)
	return true
}

// wakeFor wakes a connection that takes the kind, if one is idle.
func (s *Set[T]) wakeFor(k Kind) {
	if s.delays() {
		s.startTimer()
		return
	}
	if p := s.free(k, false); p != nil {
		p.wake <- struct{}{}
	}
}

// counted keeps the count of the pending ops that run alone.
func (s *Set[T]) counted(op *Op[T], by int) {
	if op.Alone {
		s.alone += by
	}
}

// answer notifies the callers of ops, and puts those that must run again first in the queue.
func (s *Set[T]) answer(ops []*Op[T]) {
	var again [kinds][]*Op[T]
	for _, op := range ops {
		switch {
		case !op.again:
			op.finish()
		case op.putBack():
			again[op.Kind] = append(again[op.Kind], op)
		}
	}
	if len(ops) > 1 {
		// A caller that was answered often wants more at once: let it come, and be in the
		// next batch.
		runtime.Gosched()
	}
	for kind, put := range again {
		if len(put) > 0 {
			s.mu.Lock()
			s.pending[kind] = append(put, s.pending[kind]...)
			for _, op := range put {
				s.counted(op, 1)
			}
			s.mu.Unlock()
		}
	}
}

// next blocks until there is work for p, and returns nil when the set has been closed.
func (s *Set[T]) next(p *pinned[T]) []*Op[T] {
	for {
		s.mu.Lock()
		p.ends()
		if s.delays() {
			s.startTimer()
		} else if ops := s.take(p); ops != nil {
			p.busy, p.running, p.merges = true, len(ops), !ops[0].Alone
			s.wakeForRest()
			s.mu.Unlock()
			return ops
		}
		if s.closed {
			s.mu.Unlock()
			return nil
		}
		s.idle = append(s.idle, p)
		s.mu.Unlock()
		<-p.wake
		switch {
		case p.retires:
			p.drop()
			p.retires = false
		case p.session == nil:
			s.warm(p)
		}
	}
}

// take removes what runs next: renewals by themselves, releases and acquires together, in this
// order.
func (s *Set[T]) take(p *pinned[T]) []*Op[T] {
	if ops := s.takeKind(nil, Renew); ops != nil {
		return ops
	}
	ops := s.takeKind(nil, Release)
	if !p.takes(Acquire) || len(ops) > 0 && ops[0].Alone {
		return ops
	}
	return s.takeKind(ops, Acquire)
}

// takeKind adds ops of a kind to those that are taken already, from the front of what is pending,
// as long as they fit in one batch.
func (s *Set[T]) takeKind(ops []*Op[T], kind Kind) []*Op[T] {
	queue := s.pending[kind]
	for len(queue) > 0 && len(ops) < max(1, s.cfg.Merge) &&
		(len(ops) == 0 || !queue[0].Alone && !ops[0].Alone) {
		op := queue[0]
		queue[0] = nil
		queue = queue[1:]
		s.counted(op, -1)
		if op.start() {
			ops = append(ops, op)
		}
	}
	if len(queue) == 0 {
		queue = s.pending[kind][:0] // keep the array: no allocation while work comes and goes
	}
	s.pending[kind] = queue
	return ops
}

// wakeForRest wakes an idle connection for ops that were put back: nothing has been woken for them.
func (s *Set[T]) wakeForRest() {
	for kind, queue := range s.pending {
		if len(queue) > 0 {
			s.wakeFor(Kind(kind))
		}
	}
}

// Settle returns when everything that was running when it was called has ended, or with ctx. An op
// that its caller left has no effect after that, but for those that are Dropped.
func (s *Set[T]) Settle(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.conns {
		for turn := p.runs; p.busy && p.runs == turn && ctx.Err() == nil; {
			s.ended.Wait()
		}
	}
}

// Close runs what is pending to its end, closes every connection and returns when the goroutines
// are gone.
func (s *Set[T]) Close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.ager.Stop()
	s.end()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, p := range idle {
		p.wake <- struct{}{}
	}
	s.wg.Wait()
}

// How many connections a store keeps by default, measured on two cores.
const (
	// Merging is for stores that batch what waits. With 16 to 1,024 goroutines four are slower
	// by 1 to 18 %, because each takes less at once.
	Merging = 3
	// Single is for stores that send each operation by itself. With 8 goroutines three are
	// slower by 10 to 20 %.
	Single = 4
)

// Count returns how many connections to keep of a pool of limit (0: no limit), of which useful are
// of use (0: all): as many as asked (0: usual), and of a small pool no fewer than least. It leaves
// the application at least one, because a worker that holds a lock and wants to write would
// otherwise wait for ever.
func Count(asked, usual, useful, limit, least int) (int, error) {
	conns := asked
	if conns == 0 {
		conns = usual
		if limit > 0 {
			conns = max(least, min(conns, limit-1))
		}
	}
	if useful > 0 {
		conns = min(conns, useful)
	}
	if limit > 0 && limit < conns+1 {
		return 0,
			fmt.Errorf(
				"%w: MaxOpenConns (%d) must be at least %d: rowlock keeps %d and the application "+
					"needs one; raise it, or give rowlock a pool of its own",
				lease.ErrPool, limit, conns+1, conns)
	}
	return conns, nil
}
