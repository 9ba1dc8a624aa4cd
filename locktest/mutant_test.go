package locktest

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// flaw is one way of getting a store wrong, and the properties that must notice. The names are of
// real mistakes wherever there are some: see the comments.
type flaw struct {
	name   string
	add    func(m *mutant)
	caught []string
}

// mutant is a right store whose methods can be replaced by wrong ones.
type mutant struct {
	*fencing
	over      <-chan struct{} // closed when the test ends
	acquire   func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)
	renew     func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error)
	release   func(context.Context, []lease.Lease) ([]lease.Released, error)
	inspect   func(context.Context, lease.Filter) ([]lease.Record, error)
	sweep     func(context.Context, lease.SweepOptions) (int64, error)
	fence     func(context.Context, lease.Runner, lease.Lease) error
	renewing  func(context.Context, lease.Runner, lease.RenewRequest) error
	releaseTx func(context.Context, lease.Runner, lease.Lease) error
	handOver  func(context.Context, []lease.HandOver) ([]lease.Acquired, error)
	all       func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)
	any       func(context.Context, []lease.AcquireRequest, int) ([]lease.Acquired, error)
	within    func(context.Context, lease.Limit, []lease.AcquireRequest, int) ([]lease.Acquired, error)
	resize    func(context.Context, lease.Limit) error
	making    func(context.Context, lease.Limit) (lease.Limit, error)
	raise     func(context.Context, []lease.RaiseRequest) ([]lease.Raised, error)
	join      func(context.Context, []lease.Ticket) (bool, error)
	leave     func(context.Context, []lease.Lease) error
	places    func(context.Context, []lease.Lease) ([]lease.QueuePosition, error)
	claim     func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)
	pass      func(context.Context, []lease.Lease) ([]lease.Passed, error)

	share     func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)
	downgrade func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error)
	intent    func(context.Context, lease.Owner, []string, time.Duration) error

	forceRelease  func(context.Context, lease.ForceRequest) (lease.Forced, error)
	forceReleases func(context.Context, lease.ForcedFilter) ([]lease.Forced, error)

	write   func(context.Context, []lease.TraceEvent) error
	read    func(context.Context, lease.TraceFilter) ([]lease.TraceEvent, error)
	clean   func(context.Context, lease.SweepOptions) (int64, error)
	passing func(context.Context, string, []lease.SlotHandOver) ([]lease.Acquired, error)

	undying  []lease.Ticket // for flaws of the queue
	await    func(context.Context, lease.Owner, string, []string, time.Duration) error
	desist   func(context.Context, lease.Owner, []string) error
	awaited  func(context.Context, lease.Owner, []string) ([]bool, error)
	listen   func(context.Context, func(string)) error
	announce func(context.Context, []string) error
	note     func(context.Context, lease.Party, []lease.Caller, time.Duration) error
	erase    func(context.Context, []lease.Caller) error
	edges    func(context.Context, lease.Party, []lease.Owner, int) ([]lease.Edge, error)
}

func newMutant(add func(m *mutant)) *mutant {
	f := newFencing()
	m := &mutant{
		fencing: f, acquire: f.Acquire, renew: f.Renew, release: f.Release, inspect: f.Inspect,
		sweep: f.Sweep, fence: f.Fence, renewing: f.FenceRenew, releaseTx: f.ReleaseTx, handOver: f.HandOver, all: f.AcquireAll, any: f.AcquireAny,
		join: f.Join, leave: f.Leave, places: f.QueuePositions, claim: f.Claim, pass: f.Pass,
		await: f.Register, desist: f.Unregister, awaited: f.Awaited, listen: f.Listen, announce: f.Announce,
		note: f.Record, erase: f.Erase, edges: f.Edges, raise: f.Raise,
		within: f.AcquireWithin, passing: f.PassSlots, resize: f.Resize, making: f.MakeLimit,
		share: f.Share, downgrade: f.Downgrade, intent: f.Intend,
	}
	m.forceRelease, m.forceReleases = f.ForceRelease, f.ForceReleases
	m.write, m.read, m.clean = f.WriteTrace, f.ReadTrace, f.SweepTrace
	add(m)
	return m
}

func (m *mutant) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return m.acquire(ctx, reqs)
}

func (m *mutant) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return m.renew(ctx, reqs)
}

func (m *mutant) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return m.release(ctx, leases)
}

func (m *mutant) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	return m.inspect(ctx, f)
}

func (m *mutant) Sweep(ctx context.Context, opts lease.SweepOptions) (int64, error) {
	return m.sweep(ctx, opts)
}

func (m *mutant) Fence(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	return m.fence(ctx, tx, l)
}

func (m *mutant) FenceRenew(ctx context.Context, tx lease.Runner, q lease.RenewRequest) error {
	return m.renewing(ctx, tx, q)
}

func (m *mutant) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	return m.releaseTx(ctx, tx, l)
}

// eachAcquire replaces what is answered to one request.
func (m *mutant) eachAcquire(answer func(q lease.AcquireRequest) lease.Acquired) {
	m.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		return each(ctx, reqs, answer)
	}
}

func (m *mutant) eachRenew(answer func(q lease.RenewRequest) lease.Renewed) {
	m.renew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		return each(ctx, reqs, answer)
	}
}

func (m *mutant) eachRelease(answer func(l lease.Lease) lease.Released) {
	m.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
		return each(ctx, leases, answer)
	}
}

func each[Q, A any](ctx context.Context, items []Q, answer func(Q) A) ([]A, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answers := make([]A, len(items))
	for i, item := range items {
		answers[i] = answer(item)
	}
	return answers, nil
}

// ask, extend and free are the right answers to one request.
func (m *mutant) ask(q lease.AcquireRequest) lease.Acquired {
	a, err := sole(m.fencing.Acquire(context.Background(), []lease.AcquireRequest{q}))
	if err != nil {
		return lease.Acquired{Err: err}
	}
	return a
}

func (m *mutant) extend(q lease.RenewRequest) lease.Renewed {
	a, err := sole(m.fencing.Renew(context.Background(), []lease.RenewRequest{q}))
	if err != nil {
		return lease.Renewed{Err: err}
	}
	return a
}

func (m *mutant) free(l lease.Lease) lease.Released {
	a, err := sole(m.fencing.Release(context.Background(), []lease.Lease{l}))
	if err != nil {
		return lease.Released{Err: err}
	}
	return a
}

// force grants q even if the key is held, and puts token into the row unless it is 0.
func (m *mutant) force(q lease.AcquireRequest, token lease.Token) lease.Acquired {
	m.Expire(q.Key)
	a := m.ask(q)
	if a.Granted && token != 0 {
		m.SetToken(q.Key, token)
		a.Token = token
	}
	return a
}

// otherKeys makes a store that takes its keys for something else.
func otherKeys(fold func(key string) string) func(m *mutant) {
	return func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired { q.Key = fold(q.Key); return m.ask(q) })
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed { q.Key = fold(q.Key); return m.extend(q) })
		m.eachRelease(func(l lease.Lease) lease.Released { l.Key = fold(l.Key); return m.free(l) })
	}
}

// otherOwners makes a store that takes its owners for something else.
func otherOwners(fold func(o lease.Owner) lease.Owner) func(m *mutant) {
	return func(m *mutant) {
		m.eachAcquire(func(q lease.AcquireRequest) lease.Acquired { q.Owner = fold(q.Owner); return m.ask(q) })
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed { q.Owner = fold(q.Owner); return m.extend(q) })
		m.eachRelease(func(l lease.Lease) lease.Released { l.Owner = fold(l.Owner); return m.free(l) })
	}
}
