package locktest

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

var anyFlaws = []flaw{
	{"any is a batch", func(m *mutant) {
		m.any = func(ctx context.Context, reqs []lease.AcquireRequest, _ int) ([]lease.Acquired, error) {
			return m.Store.Acquire(ctx, reqs)
		}
	}, []string{"any grants exactly as many as were asked for, or none"}},
	{"any keeps a part", func(m *mutant) {
		m.any = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			answers, err := m.fencing.AcquireAny(ctx, reqs, n)
			for n--; n > 0 && err == nil && len(grantedOf(reqs, answers)) == 0; n-- {
				answers, err = m.fencing.AcquireAny(ctx, reqs, n)
			}
			return answers, err
		}
	}, []string{
		"any grants exactly as many as were asked for, or none",
		"a loser of any leaves owners, tokens and expiries as they are, and makes no row",
	}},
	{"any begins with the last", func(m *mutant) {
		m.any = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			back := slices.Clone(reqs)
			slices.Reverse(back)
			answers, err := m.fencing.AcquireAny(ctx, back, n)
			slices.Reverse(answers)
			return answers, err
		}
	}, []string{"any takes the first that are free, in the order of the requests"}},
	{"any asks for the first only", func(m *mutant) {
		m.any = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			answers, err := m.fencing.AcquireAny(ctx, reqs[:min(n, len(reqs))], n)
			for len(answers) < len(reqs) && err == nil {
				answers = append(answers, lease.Acquired{Possible: true})
			}
			return answers, err
		}
	}, []string{"any passes over keys that are held, and over nothing else"}},
	{"any leaves expired leases alone", func(m *mutant) {
		m.any = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			for _, q := range reqs {
				if row, _ := m.row(q.Key); !row.Owner.IsZero() && !row.Held {
					return make([]lease.Acquired, len(reqs)), nil
				}
			}
			return m.fencing.AcquireAny(ctx, reqs, n)
		}
	}, []string{"any of keys that are absent, free and expired is granted"}},
	{"any takes what is held", func(m *mutant) {
		m.any = func(_ context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			answers := make([]lease.Acquired, len(reqs))
			for i := range n {
				answers[i] = m.force(reqs[i], 0)
			}
			return answers, nil
		}
	}, []string{
		"no key has two owners however many ask for any",
		"any passes over keys that are held, and over nothing else",
	}},
	{"any does not say who holds", func(m *mutant) {
		m.answersAny(func(answers []lease.Acquired) []lease.Acquired {
			for i := range answers {
				answers[i].Holder = lease.Holder{}
			}
			return answers
		})
	}, []string{"a loser of any hears of every holder"}},
	{"any asked for again takes another", func(m *mutant) {
		m.any = func(_ context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			answers := make([]lease.Acquired, len(reqs))
			for i, q := range reqs {
				if row, _ := m.row(q.Key); n > 0 && !row.Held {
					answers[i] = m.ask(q)
					n--
				}
			}
			return answers, nil
		}
	}, []string{
		"any asked for again is the same lease, not extended, and no other",
		"what is left of an earlier any is unknown and not made up for",
	}},
	{"any fails for a key whose tokens have run out", func(m *mutant) {
		m.any = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			for _, q := range reqs {
				if row, _ := m.row(q.Key); row.Token >= lease.MaxToken-1 {
					return nil, lease.ErrTokenExhausted
				}
			}
			return m.fencing.AcquireAny(ctx, reqs, n)
		}
	}, []string{"a key whose tokens are exhausted is passed over, and says so"}},
	{"any takes anything", func(m *mutant) {
		m.any = func(_ context.Context, reqs []lease.AcquireRequest, _ int) ([]lease.Acquired, error) {
			answers := make([]lease.Acquired, len(reqs))
			for i, q := range reqs {
				answers[i] = m.ask(q)
			}
			return answers, nil
		}
	}, []string{"a key that comes twice among any, or a wrong number, is refused"}},
	{"any takes a hundred at most", func(m *mutant) {
		m.any = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			few := reqs[:min(100, len(reqs))]
			answers, err := m.fencing.AcquireAny(ctx, few, min(n, len(few)))
			for len(answers) < len(reqs) && err == nil {
				answers = append(answers, lease.Acquired{})
			}
			return answers, err
		}
	}, []string{"any of 500 keys is granted"}},
}

func (m *mutant) answersAny(change func(answers []lease.Acquired) []lease.Acquired) {
	m.any = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
		answers, err := m.fencing.AcquireAny(ctx, reqs, n)
		return change(answers), err
	}
}

func (m *mutant) AcquireAny(
	ctx context.Context, reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	return m.any(ctx, reqs, n)
}
