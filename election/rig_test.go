package election_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

// candidate is a call of Run whose terms a test sees begin, and lets end.
type candidate struct {
	t    *testing.T
	stop context.CancelCauseFunc
	done chan error
	took chan *leading // terms that have begun
	quit chan struct{} // closed when the test is over

	mu   sync.Mutex
	errs []error
}

// leading is a term that lasts until the test answers it.
type leading struct {
	ctx  context.Context
	l    *rowlock.Lock
	term lease.Token
	end  chan error
}

// returns lets lead return.
func (l *leading) returns(err error) { l.end <- err }

// stand has a candidate run for "boss". It ends with the test.
func stand(t *testing.T, c *rowlock.Client, opts ...election.Option) *candidate {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	a := &candidate{
		t: t, stop: stop, done: make(chan error, 1), took: make(chan *leading, 100),
		quit: make(chan struct{}),
	}
	t.Cleanup(func() { close(a.quit) })
	opts = append([]election.Option{election.OnError(a.failed)}, opts...)
	go func() { a.done <- election.Run(ctx, c, "boss", a.lead, opts...) }()
	synctest.Wait()
	return a
}

func (a *candidate) lead(ctx context.Context, l *rowlock.Lock) error {
	led := &leading{ctx, l, l.Token(), make(chan error, 1)}
	a.took <- led
	select {
	case err := <-led.end:
		return err
	case <-a.quit: // the test is over
		return nil
	}
}

func (a *candidate) failed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, err)
}

// told returns what OnError was told since the last call.
func (a *candidate) told() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	errs := a.errs
	a.errs = nil
	return errs
}

// wantTold wants OnError to have been told once since the last call, of want.
func (a *candidate) wantTold(want error) {
	a.t.Helper()
	if errs := a.told(); len(errs) != 1 || !errors.Is(errs[0], want) {
		a.t.Errorf("OnError was told %v, want one that is %v", errs, want)
	}
}

// next returns the candidate's next term, which must begin within limit.
func (a *candidate) next(limit time.Duration) *leading {
	a.t.Helper()
	synctest.Wait()
	select {
	case l := <-a.took:
		return l
	case <-time.After(max(limit, 1)):
		a.t.Fatalf("the candidate did not lead within %s", limit)
		return nil
	}
}

// waits fails the test if the candidate leads within d.
func (a *candidate) waits(d time.Duration) {
	a.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if len(a.took) > 0 {
		a.t.Fatal("the candidate leads beside another")
	}
}

// ended returns the result of Run, which must return within limit.
func (a *candidate) ended(limit time.Duration) error {
	a.t.Helper()
	synctest.Wait()
	select {
	case err := <-a.done:
		return err
	case <-time.After(max(limit, 1)):
		a.t.Fatalf("Run did not return within %s", limit)
		return nil
	}
}

// retire ends a candidate, whose lead returns at once if it leads.
func (a *candidate) retire(l *leading) {
	a.t.Helper()
	a.stop(nil)
	if l != nil {
		<-l.ctx.Done()
		l.returns(nil)
	}
	if err := a.ended(time.Minute); err != nil {
		a.t.Errorf("Run: %v", err)
	}
}

// leads fails the test unless the term's ctx and the key's row say that it lasts.
func (l *leading) leads(t *testing.T, s lease.Store) {
	t.Helper()
	synctest.Wait()
	r := clienttest.Record(t, s, election.Key("boss"))
	if l.ctx.Err() != nil || !r.Held || r.Token != l.term {
		t.Errorf("term %d: %v; the row is %+v", l.term, context.Cause(l.ctx), r)
	}
}
