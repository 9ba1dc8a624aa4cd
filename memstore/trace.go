package memstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Tracer = (*Store)(nil)

// WriteTrace adds events. See [lease.Tracer].
func (s *Store) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	if err := cmp.Or(lease.CheckTrace(events), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		e.At = now.Add(-max(0, now.Sub(e.At))).UTC().Truncate(time.Microsecond)
		e.Detail = lease.CleanDetail(e.Detail)
		s.trace = append(s.trace, e)
	}
	slices.SortStableFunc(s.trace, inOrder)
	return nil
}

// inOrder compares events by time and ID.
func inOrder(a, b lease.TraceEvent) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
}

// ReadTrace lists events, latest first. See [lease.Tracer].
func (s *Store) ReadTrace(
	ctx context.Context, f lease.TraceFilter,
) (out []lease.TraceEvent, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	most := cmp.Or(max(f.Limit, 0), 1000)
	for _, e := range slices.Backward(s.trace) {
		if len(out) < most && inPage(&f, &e) {
			out = append(out, e)
		}
	}
	return out, nil
}

func inPage(f *lease.TraceFilter, e *lease.TraceEvent) bool {
	switch {
	case !f.Before.At.IsZero() && inOrder(*e, f.Before) >= 0:
		return false
	case f.Key != "" || f.NoKey:
		return e.Key == f.Key
	}
	return strings.HasPrefix(e.Key, f.Prefix)
}

// SweepTrace removes old events. See [lease.Tracer].
func (s *Store) SweepTrace(ctx context.Context, o lease.SweepOptions) (int64, error) {
	if err := cmp.Or(o.Check(), ctx.Err()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := time.Now().Add(-o.Retention)
	n := len(s.trace)
	s.trace = slices.DeleteFunc(s.trace, func(e lease.TraceEvent) bool { return e.At.Before(last) })
	return int64(n - len(s.trace)), nil
}
