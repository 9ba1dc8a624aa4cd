package acquire

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

// turns are this client's calls that wait for slots of a limit, in the order they came. The head of
// each queue bids: when a slot was released here, and every 10 to 250 ms.
type turns struct {
	once    sync.Once
	queues  *waitq.Queues[struct{}, Grants]
	waiting atomic.Int64
}

func (t *turns) of() *waitq.Queues[struct{}, Grants] {
	t.once.Do(func() { t.queues = waitq.New[struct{}, Grants]() })
	return t.queues
}

// mixedPlace is where a call of several kinds waits: in the queue of a key that is in the way, or
// of a limit. No key is ever handed to it.
type mixedPlace struct {
	a     *Asker
	q     Queue
	call  *Call
	keyed Place                           // nil unless a key is in the way
	turn  *waitq.Waiter[struct{}, Grants] // nil unless a limit is
}

// joinMixed bids at once, unless other calls wait for one of the keys.
func (a *Asker) joinMixed(ctx context.Context, q Queue, c *Call) (p Place, bid bool, err error) {
	m := &mixedPlace{a: a, q: q, call: c}
	if len(c.Keys) == 0 {
		return m, true, nil
	}
	bid, err = m.toKeys(ctx)
	return m, bid, err
}

func (p *mixedPlace) Bid(ctx context.Context) (Grants, error) { return p.a.Mixed(ctx, p.call) }

// Lost goes to the queue of what is in the way. A database that is overloaded is in the way of all.
func (p *mixedPlace) Lost(ctx context.Context, err error) (again bool, failed error) {
	name := p.call.Mix.full
	if name == "" && len(p.call.Keys) == 0 {
		name = p.call.Mix.Slots[0].Name
	}
	switch {
	case name != "":
		p.leaveKeys(ctx)
		return p.toTurn(name), nil
	case p.keyed != nil:
		return p.keyed.Lost(ctx, err)
	}
	p.leaveTurn()
	return p.toKeys(ctx)
}

// toTurn waits in the queue of a limit. The first there bids once more, because it would not have
// been told of a release in between.
func (p *mixedPlace) toTurn(name string) (again bool) {
	if p.turn != nil && p.turn.Key == name {
		p.a.turns.of().Lost(p.turn)
		return false
	}
	p.leaveTurn()
	p.a.turns.waiting.Add(1)
	p.turn, again = p.a.turns.of().Join(name, struct{}{}, p.a.Watches(p.call), true)
	return again
}

func (p *mixedPlace) leaveTurn() {
	if p.turn == nil {
		return
	}
	p.a.turns.of().Leave(p.turn)
	p.a.turns.of().Wake(p.turn.Key) // the next one's turn has come
	p.a.turns.waiting.Add(-1)
	p.turn = nil
}

func (p *mixedPlace) toKeys(ctx context.Context) (bid bool, err error) {
	keyed, bid, err := p.q.Join(ctx, p.call)
	if err == nil {
		p.keyed = keyed
	}
	return bid, err
}

func (p *mixedPlace) leaveKeys(ctx context.Context) {
	if p.keyed != nil {
		p.a.Discard(ctx, p.keyed.Leave(ctx).Grant)
		p.keyed = nil
	}
}

// Awaits is the key or the limit in the way.
func (p *mixedPlace) Awaits() string {
	switch {
	case p.keyed != nil:
		return p.keyed.Awaits()
	case p.turn != nil:
		return p.turn.Key
	}
	return p.call.Names()[0]
}

func (p *mixedPlace) Signals() <-chan waitq.Signal[Grants] {
	switch {
	case p.keyed != nil:
		return p.keyed.Signals()
	case p.turn != nil:
		return p.turn.Signal
	}
	return nil
}

func (p *mixedPlace) News() <-chan struct{} {
	switch {
	case p.keyed != nil:
		return p.keyed.News()
	case p.turn != nil:
		return p.turn.News
	}
	return nil
}

// Position counts the calls of this process.
func (p *mixedPlace) Position() (Position, bool) {
	switch {
	case p.keyed != nil:
		return p.keyed.Position()
	case p.turn != nil:
		return Position{Ahead: p.a.turns.of().Ahead(p.turn)}, true
	}
	return Position{}, false
}

func (p *mixedPlace) Seen() Seen {
	if p.keyed != nil {
		return p.keyed.Seen()
	}
	return Seen{}
}

// Won leaves the queue. The next waiter for an exclusive key waits for its release, and one for
// anything else may have it now.
func (p *mixedPlace) Won(g Grants) {
	p.leaveTurn()
	switch {
	case p.keyed == nil:
	case p.call.shares(p.keyed.Awaits()):
		p.leaveKeys(context.Background())
	default:
		p.keyed.Won(g)
	}
}

func (p *mixedPlace) Leave(ctx context.Context) (none waitq.Signal[Grants]) {
	p.leaveTurn()
	p.leaveKeys(ctx)
	return none
}

// soon is the first pause between two bids for slots, which then doubles up to retry.
const soon = 10 * time.Millisecond

// pauses returns when a call that was refused bids, or wishes, without a signal.
func (m *Mix) pauses() time.Duration {
	if m.full == "" {
		m.pause = soon
		return retry
	}
	now := max(m.pause, soon)
	m.pause = min(2*now, retry)
	return now
}

// bids reports whether a call bids now that its pause is over: for slots if it is the head of the
// queue, and for a key that it is to share, because no release tells of a team that was made.
func (m *Mix) bids(p Place) bool {
	if m.full != "" {
		at, _ := p.Position()
		return at.Ahead == 0
	}
	return slices.Contains(m.Shared, p.Awaits())
}
