package watchdog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// What most leases here have: the defaults of a client.
const (
	ttl    = 30 * time.Second
	margin = 3 * time.Second
	every  = 10 * time.Second
	trust  = ttl - margin // how long after a request was sent its answer is believed
)

// renewer is a store made of one function.
type renewer func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error)

func (f renewer) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return f(ctx, reqs)
}

// all gives every request the same answer.
func all(reqs []lease.RenewRequest, o lease.RenewOutcome) ([]lease.Renewed, error) {
	answers := make([]lease.Renewed, len(reqs))
	for i := range answers {
		answers[i].Outcome = o
	}
	return answers, nil
}

var extend = renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return all(reqs, lease.Extended)
})

// swallow is a network that lets nothing through: a call returns when its caller has given up.
func swallow(ctx context.Context, _ []lease.RenewRequest) ([]lease.Renewed, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

var errDown = errors.New("connection refused")

// refuse is a store that is down.
func refuse(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) { return nil, errDown }

// recorder notes what is sent to a store, and when.
type recorder struct {
	store watchdog.Renewer

	mu    sync.Mutex
	sends []send
}

type send struct {
	at   time.Time
	reqs []lease.RenewRequest
}

func (r *recorder) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	r.mu.Lock()
	r.sends = append(r.sends, send{time.Now(), reqs})
	r.mu.Unlock()
	return r.store.Renew(ctx, reqs)
}

// since returns the sends at or after a moment.
func (r *recorder) since(from time.Time) []send {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.sends {
		if !s.at.Before(from) {
			return r.sends[i:]
		}
	}
	return nil
}

func (r *recorder) all() []send { return r.since(time.Time{}) }

// watch is a lease under a dog's eyes, and what came of it.
type watch struct {
	watchdog.Held
	sent  time.Time
	ended chan ending // holds one
}

type ending struct {
	cause error
	after time.Duration // since sent
}

// newWatch returns a lease whose granting request is sent now.
func newWatch(t *testing.T, key string) *watch {
	w := &watch{sent: time.Now(), ended: make(chan ending, 1)}
	w.Held = watchdog.Held{
		Lease: lease.Lease{Key: key, Owner: lease.NewOwner(), Token: 1},
		TTL:   ttl, Margin: margin, Every: every,
		Holder: holder{end: func(cause error) {
			select {
			case w.ended <- ending{cause, time.Since(w.sent)}:
			default:
				t.Errorf("%q ended twice, now with %v", key, cause)
			}
		}},
	}
	return w
}

// keep returns a lease that was granted this moment and is watched.
func keep(t *testing.T, dog *watchdog.Watchdog, key string, changes ...func(*watchdog.Held)) *watch {
	t.Helper()
	w := newWatch(t, key)
	for _, change := range changes {
		change(&w.Held)
	}
	if err := dog.Keep(&w.Held, w.sent); err != nil {
		t.Fatalf("Keep refused %q, granted this moment: %v", key, err)
	}
	return w
}

func renewEvery(d time.Duration) func(*watchdog.Held) {
	return func(h *watchdog.Held) { h.Every = d }
}

func noRenew(h *watchdog.Held) { h.Every = 0 }

// alive fails the test if the lease has ended.
func (w *watch) alive(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case e := <-w.ended:
		t.Fatalf("%q ended after %v with %v", w.Key, e.after, e.cause)
	default:
	}
}

// end waits for the lease to end, and fails the test unless it does so with cause.
func (w *watch) end(t *testing.T, cause error) ending {
	t.Helper()
	select {
	case e := <-w.ended:
		if !errors.Is(e.cause, cause) {
			t.Fatalf("%q ended after %v with %v, want %v", w.Key, e.after, e.cause, cause)
		}
		return e
	case <-time.After(100 * ttl):
		t.Fatalf("%q did not end, want %v", w.Key, cause)
		panic("unreachable")
	}
}

// endAt waits for the lease to end, and fails the test unless it does so with cause exactly that
// long after it was granted.
func (w *watch) endAt(t *testing.T, after time.Duration, cause error) {
	t.Helper()
	if e := w.end(t, cause); e.after != after {
		t.Errorf("%q ended after %v, want %v", w.Key, e.after, after)
	}
}
