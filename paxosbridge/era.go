package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// audited is a table that grants nothing in a new era before an audit: a server that has forgotten
// grants may have forgotten moves, and would grant a key that the cluster has granted.
type audited struct {
	Table
	gate  adapter.EraGate
	admit func(start lease.Token)
	audit func(context.Context) error

	ends   context.Context // ends every audit
	audits sync.WaitGroup

	mu      sync.Mutex
	last    lease.Token // that is admitted
	running *admission
}

// eras is how many new eras one request outlasts.
const eras = 8

// admission is an audit that all wait for who need it.
type admission struct {
	done chan struct{}
	err  error // valid once done is closed
}

// holdEras returns a table that asks for an audit in each new era, until free is called; or table
// itself if it has no eras. Audit bounds itself. free returns when none runs any more.
func holdEras(table Table, audit func(context.Context) error) (held Table, free func()) {
	gate, ok := adapter.As[adapter.EraGate](table)
	if !ok {
		return table, func() {}
	}
	ends, end := context.WithCancel(context.Background())
	t := &audited{Table: table, gate: gate, audit: audit, ends: ends}
	t.last = gate.Era()
	admit, release := gate.HoldEras()
	t.admit = admit
	return t, func() {
		t.mu.Lock()
		end() // no audit begins any more
		t.mu.Unlock()
		t.audits.Wait()
		release()
	}
}

// Unwrap has the table's other abilities be found.
func (t *audited) Unwrap() lease.Store { return t.Table }

// Acquire asks again after the audit.
func (t *audited) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return t.ask(ctx, func() ([]lease.Acquired, error) { return t.Table.Acquire(ctx, reqs) })
}

// HandOver asks again after the audit.
func (t *audited) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	return t.ask(ctx, func() ([]lease.Acquired, error) { return t.Table.HandOver(ctx, items) })
}

// AcquireAll asks again after the audit.
func (t *audited) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	all, err := ability[lease.AllAcquirer](t.Table, "acquire several keys at once")
	if err != nil {
		return nil, err
	}
	return t.ask(ctx, func() ([]lease.Acquired, error) { return all.AcquireAll(ctx, reqs) })
}

// ask repeats the whole request: what was granted of it the first time is answered so again. If the
// audit fails, what was granted is answered so too, because its caller has to release it.
func (t *audited) ask(
	ctx context.Context, request func() ([]lease.Acquired, error),
) (answers []lease.Acquired, err error) {
	held := func(a lease.Acquired) bool { return errors.Is(a.Err, adapter.ErrNewEra) }
	for range eras {
		next, failed := request()
		if err == nil && len(answers) > 0 {
			next = adapter.Each("bridge", next, failed, len(answers), acquireError)
			failed = nil
			for i := range next {
				next[i] = again(answers[i], next[i])
			}
		}
		answers, err = next, failed
		if !errors.Is(err, adapter.ErrNewEra) && !slices.ContainsFunc(answers, held) {
			return answers, err
		}
		if _, failed := t.enter(ctx); failed != nil {
			for i := range answers {
				if held(answers[i]) {
					answers[i].Err = failed
				}
			}
			if err != nil {
				err = failed
			}
			return answers, err
		}
	}
	return answers, err
}

// enter admits the newest era after an audit. Callers that come meanwhile wait for the same audit,
// and none longer than its ctx. begun is false if none has begun since the last one admitted.
func (t *audited) enter(ctx context.Context) (begun bool, err error) {
	t.mu.Lock()
	if t.last >= t.gate.Era() {
		t.mu.Unlock()
		return false, nil
	}
	a := t.running
	switch {
	case t.ends.Err() != nil:
		t.mu.Unlock()
		return true, fmt.Errorf("%w: bridge", lease.ErrClosed)
	case a == nil:
		a = &admission{done: make(chan struct{})}
		t.running = a
		// Its callers may all have left before it ends.
		t.audits.Go(func() { t.compare(context.WithoutCancel(ctx), a) })
	}
	t.mu.Unlock()
	select {
	case <-a.done:
		return true, a.err
	case <-ctx.Done():
		return true, fmt.Errorf("%w: %w", adapter.ErrNewEra, ctx.Err())
	}
}

// compare audits, and admits the era that had begun before the audit.
func (t *audited) compare(ctx context.Context, a *admission) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ends, cancel)()
	era := t.gate.Era()
	err := t.audit(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.last = max(t.last, era)
		t.admit(era)
	} else {
		a.err = fmt.Errorf("%w: the audit has failed: %w", adapter.ErrNewEra, err)
	}
	t.running = nil
	close(a.done)
}
