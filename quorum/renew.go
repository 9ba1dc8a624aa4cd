package quorum

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew extends each lease at all members. It is extended if a majority has extended it in time,
// and lost if a majority cannot have it any more.
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if err := s.ready(ctx, "renew"); err != nil {
		return nil, err
	}
	reqs = slices.Clone(reqs) // a member may answer after the caller uses its slice again
	bound := s.cfg.Timeout
	for _, q := range reqs {
		bound = min(bound, s.asked(q.TTL))
	}
	sent, tallies := time.Now(), make([]tally, len(reqs))
	run(ctx, s, round[lease.Renewed]{
		what: "renew", bound: bound, items: s.all(len(reqs)),
		keys: keysOf(reqs, func(q lease.RenewRequest) string { return q.Key }),
		send: func(ctx context.Context, m *member) ([]lease.Renewed, error) {
			return m.store.Renew(ctx, reqs)
		},
		failed: adapter.Unrenewed,
		take: func(_ *member, answers []lease.Renewed) bool {
			enough := true
			for i, a := range answers {
				tallies[i].renewed(a)
				enough = enough && tallies[i].settled(s.need, len(s.members))
			}
			return enough
		},
		late: func(m *member, answers []lease.Renewed) { s.dropLate(m, reqs, answers, tallies) },
	})
	answers := make([]lease.Renewed, len(reqs))
	var lost []lease.Lease
	for i := range reqs {
		answers[i] = s.renewed(ctx, reqs[i], &tallies[i], time.Since(sent))
		if a := answers[i]; a.Err == nil && a.Outcome == lease.Lost && tallies[i].named > 0 {
			lost = append(lost, reqs[i].Lease)
		}
	}
	s.drop(lost)
	return answers, only(answers, func(a lease.Renewed) error { return a.Err })
}

// tally counts what members answer for one lease: named says that they had it.
type tally struct {
	named, busy, gone int
	errs              []error
}

func (t *tally) renewed(a lease.Renewed) {
	switch {
	case a.Err != nil:
		t.errs = append(t.errs, a.Err)
	case a.Outcome == lease.Extended:
		t.named++
	case a.Outcome == lease.Busy:
		t.busy++
	default:
		t.gone++
	}
}

// settled reports whether further answers change nothing: a majority had the lease, or so many had
// not that the others are none.
func (t *tally) settled(need, members int) bool {
	return t.named >= need || members-t.gone < need
}

func (s *Store) renewed(
	ctx context.Context, q lease.RenewRequest, t *tally, took time.Duration,
) lease.Renewed {
	switch {
	case t.named >= s.need && took < s.valid(q.TTL):
		return lease.Renewed{Outcome: lease.Extended}
	case len(s.members)-t.gone < s.need:
		return lease.Renewed{Outcome: lease.Lost}
	case t.named >= s.need:
		t.errs = append(t.errs, fmt.Errorf("it took %s of a TTL of %s", took, q.TTL))
	case t.named+t.busy >= s.need:
		return lease.Renewed{Outcome: lease.Busy}
	case ctx.Err() != nil:
		t.errs = append(t.errs, ctx.Err())
	}
	return lease.Renewed{Err: late.Told(ctx, t.failure("renew", q.Key, len(s.members)), nil)}
}

// failure says why members have not settled it. It is unknown what they did.
func (t *tally) failure(what, key string, members int) error {
	answered := t.named + t.busy + t.gone
	return fmt.Errorf("%w: quorum: %s %q: %d of %d members answered: %w", lease.ErrUnknown, what, key,
		answered, members, orNone(oneline.Join(t.errs...)))
}

// dropLate releases leases that a member has extended after the others had decided that they are
// lost. tallies do not change any more.
func (s *Store) dropLate(
	m *member, reqs []lease.RenewRequest, answers []lease.Renewed, tallies []tally,
) {
	var lost []lease.Lease
	for i, a := range answers {
		has := a.Err == nil && a.Outcome == lease.Extended
		if has && tallies[i].named == 0 && len(s.members)-tallies[i].gone < s.need {
			lost = append(lost, reqs[i].Lease)
		}
	}
	if len(lost) > 0 {
		s.soil(m, lost...)
		s.calls.Go(func() { s.releaseAt(context.Background(), m, lost, s.cfg.Timeout) })
	}
}

// drop releases what is left of lost leases, so that no member keeps its vote from others for a
// TTL, and so that Lost is final.
func (s *Store) drop(leases []lease.Lease) {
	if len(leases) == 0 {
		return
	}
	for _, m := range s.members {
		s.soil(m, leases...)
		s.calls.Go(func() { s.releaseAt(context.Background(), m, leases, s.cfg.Timeout) })
	}
}
