// Package lossy puts a bad network between a client and a store in memory, for tests in virtual
// time: each request is delayed, and lost or refused on its way or on the way back, as a list of
// fates has it.
package lossy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"pgregory.net/rapid"
)

var errRefused = errors.New("connection refused")

// Fate is what becomes of one request on its way.
type Fate struct {
	there, back time.Duration
	lost        string // "", "request" or "answer": silently; "refused": at once
}

// Fates draws fates with delays of up to longest each way. Four of seven requests are answered.
func Fates(longest time.Duration) *rapid.Generator[Fate] {
	delay := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Map(rapid.Int64Range(1, int64(longest)), func(n int64) time.Duration {
		return time.Duration(n)
	}))
	return rapid.Custom(func(t *rapid.T) Fate {
		return Fate{
			there: delay.Draw(t, "there"), back: delay.Draw(t, "back"),
			lost: rapid.SampledFrom([]string{"", "", "", "", "request", "answer", "refused"}).Draw(t, "lost"),
		}
	})
}

// Mostly draws the fate of a request on a network that mostly works: one in eight is late, by up to
// longest, and one in nine is refused, or lost on one of its ways.
func Mostly(rng *rand.Rand, longest time.Duration) Fate {
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	f := Fate{there: upTo(3 * time.Millisecond), back: upTo(3 * time.Millisecond)}
	switch n := rng.IntN(100); {
	case n < 6:
		f.there = upTo(longest)
	case n < 12:
		f.back = upTo(longest)
	case n < 16:
		f.lost = "refused"
	case n < 19:
		f.lost = "request"
	case n < 23:
		f.lost = "answer"
	}
	return f
}

// Carry makes a call with that fate. It does not hear of ctx on the way there: a request that was
// sent may arrive after its sender has given up.
func Carry[A any](
	ctx context.Context, f Fate, call func(context.Context) (A, error),
) (none A, err error) {
	if f.lost == "refused" {
		return none, errRefused
	}
	done := make(chan A, 1)
	if f.lost != "request" {
		go func() {
			time.Sleep(f.there)
			answers, err := call(context.Background())
			if err == nil && f.lost == "" {
				time.Sleep(f.back)
				done <- answers
			}
		}()
	}
	select {
	case answers := <-done:
		return answers, nil
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", lease.ErrUnknown, ctx.Err())
	}
}

// Repeated is what a store answers that has sent a request twice: it knows that the first may yet
// be carried out.
func Repeated[A any](answers A, err error) (A, error) {
	if err != nil {
		return answers, fmt.Errorf("%w: an earlier try had no answer: %w", lease.ErrUnknown, err)
	}
	if all, ok := any(answers).([]lease.Acquired); ok {
		for i := range all {
			all[i].Unknown = true
		}
	}
	return answers, nil
}

// Network is a store as one client sees it.
type Network struct {
	store   *memstore.Store
	patient time.Duration

	mu    sync.Mutex
	fates []Fate
	next  int
}

// New returns a network that has the fates by turns. A call is given up after patient, as every
// store does some day; 0 leaves that to its caller.
func New(store *memstore.Store, patient time.Duration, fates []Fate) *Network {
	return &Network{store: store, patient: patient, fates: fates}
}

// Acquire is carried. See [lease.Store].
func (n *Network) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return carry(ctx, n, n.store.Acquire, reqs)
}

// Renew is carried. See [lease.Store].
func (n *Network) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return carry(ctx, n, n.store.Renew, reqs)
}

// Release is carried. See [lease.Store].
func (n *Network) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return carry(ctx, n, n.store.Release, leases)
}

// Inspect is not: who looks wants to see. See [lease.Store].
func (n *Network) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	return n.store.Inspect(ctx, f)
}

func carry[Q, A any](ctx context.Context, n *Network, call func(context.Context, []Q) ([]A, error), items []Q) ([]A, error) {
	if n.patient > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.patient)
		defer cancel()
	}
	return Carry(ctx, n.fate(), func(ctx context.Context) ([]A, error) { return call(ctx, items) })
}

func (n *Network) fate() Fate {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next++
	return n.fates[n.next%len(n.fates)]
}
