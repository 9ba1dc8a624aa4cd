package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// bare is a wrapper that has no ability of its own.
type bare struct{ lease.Store }

func (b bare) Unwrap() lease.Store { return b.Store }

// plain is a store that can do what every store can, and no more.
type plain struct{ lease.Store }

// odd answers with as many answers as it was told to.
type odd struct {
	lease.Store
	answers int
	err     error
}

func (o odd) Acquire(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) {
	return make([]lease.Acquired, o.answers), o.err
}

func (o odd) Release(context.Context, []lease.Lease) ([]lease.Released, error) {
	return make([]lease.Released, o.answers), o.err
}

func (o odd) Renew(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
	return make([]lease.Renewed, o.answers), o.err
}

func TestAWrapperHidesNoAbility(t *testing.T) {
	s := memstore.New()
	for name, store := range map[string]*adapter.Store{
		"itself": adapter.Of(s), "wrapped": adapter.Of(bare{s}), "wrapped twice": adapter.Of(bare{bare{s}}),
	} {
		if store.Queue == nil || store.Passer == nil || store.Registry == nil || store.Sweeper == nil {
			t.Errorf("%s: an ability is lost", name)
		}
	}
	if store := adapter.Of(plain{s}); store.Queue != nil || store.Passer != nil || store.Registry != nil {
		t.Error("a store without Unwrap has abilities of the store inside it")
	}
}

// measured is a store that measures itself.
type measured struct{ lease.Store }

func (measured) Measure() adapter.Measures { return adapter.Measures{Connections: 3} }

func TestMeasuresComeThroughAWrapper(t *testing.T) {
	if m, ok := adapter.Of(bare{bare{measured{memstore.New()}}}).Measure(); !ok || m.Connections != 3 {
		t.Errorf("measured %+v, %t", m, ok)
	}
	if m, ok := adapter.Of(memstore.New()).Measure(); ok {
		t.Errorf("a store that does not measure itself: %+v", m)
	}
}

// Of an answer that belongs to no item nothing can be believed, least of all a grant.
func TestAnotherNumberOfAnswersIsCorruptAndUnknown(t *testing.T) {
	ctx := t.Context()
	reqs := make([]lease.AcquireRequest, 2)
	for _, answers := range []int{0, 1, 3} {
		s := adapter.Of(odd{memstore.New(), answers, nil})
		got := s.Acquire(ctx, reqs)
		if len(got) != len(reqs) {
			t.Fatalf("%d answers to %d requests", len(got), len(reqs))
		}
		for _, a := range got {
			if a.Granted || !errors.Is(a.Err, lease.ErrCorrupt) || !errors.Is(a.Err, lease.ErrUnknown) {
				t.Errorf("%d answers: %+v", answers, a)
			}
		}
		if r := s.Release(ctx, make([]lease.Lease, 2)); len(r) != 2 || r[1].Err == nil {
			t.Errorf("%d answers: %+v", answers, r)
		}
		if r := s.Renew(ctx, make([]lease.RenewRequest, 2)); len(r) != 2 || r[1].Err == nil {
			t.Errorf("%d answers: %+v", answers, r)
		}
	}
}

func TestACallsErrorIsThatOfEachItem(t *testing.T) {
	s := adapter.Of(odd{memstore.New(), 0, lease.ErrBusy})
	for _, a := range s.Acquire(t.Context(), make([]lease.AcquireRequest, 3)) {
		if !errors.Is(a.Err, lease.ErrBusy) || errors.Is(a.Err, lease.ErrUnknown) {
			t.Errorf("%+v", a)
		}
	}
}

// A bridge has the method, and cannot use it for keys that have moved.
func TestAStoreThatCannotTakeAllIsAskedForEach(t *testing.T) {
	s := adapter.Of(cannot{memstore.New()})
	reqs := make([]lease.AcquireRequest, 2)
	for i, key := range []string{"a", "b"} {
		want := (lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: 1e9})
		reqs[i] = want
	}
	for _, a := range s.AcquireAll(t.Context(), reqs) {
		if !a.Granted {
			t.Errorf("%+v", a)
		}
	}
}

type cannot struct{ lease.Store }

func (cannot) AcquireAll(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) {
	return nil, lease.ErrUnsupported
}

// failing is a store whose every Acquire fails, and counts them.
type failing struct {
	lease.Store
	err  error
	asks int
}

func (f *failing) Acquire(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) {
	f.asks++
	return nil, f.err
}

// A call for any of several keys takes no longer than one for one key where nothing answers or no
// connection is left. What passes of itself may concern one key only.
func TestNoFurtherKeyIsAskedForOnceTheDatabaseDoesNotAnswer(t *testing.T) {
	reqs := []lease.AcquireRequest{{Key: "a"}, {Key: "b"}, {Key: "c"}}
	late := fmt.Errorf("not sent: %w", adapter.ErrLate)
	for err, want := range map[error]int{
		lease.ErrUnknown: 1, adapter.Outage(errors.New("no connection")): 1, late: 1, lease.ErrBusy: 3,
	} {
		f := &failing{Store: memstore.New(), err: err}
		answers := adapter.Of(plain{f}).AcquireAny(t.Context(), reqs, 1)
		if f.asks != want || !errors.Is(answers[0].Err, err) || answers[2].Possible != (want == 1) {
			t.Errorf("%v: asked for %d keys, want %d: %+v", err, f.asks, want, answers)
		}
	}
}
