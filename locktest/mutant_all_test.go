package locktest

import (
	"context"
	"runtime"

	"github.com/rowlockdb/rowlock/lease"
)

var allFlaws = []flaw{
	{"all is a batch", func(m *mutant) {
		m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers := make([]lease.Acquired, 0, len(reqs))
			for i := range reqs {
				a, err := sole(m.Store.Acquire(ctx, reqs[i:i+1]))
				if err != nil {
					return nil, err
				}
				answers = append(answers, a)
				runtime.Gosched() // as a round trip would, where there is one processor
			}
			return answers, nil
		}
	}, []string{
		"where one key is held none is granted", "a loser of all leaves owners, tokens and expiries as they are, and makes no row",
		"owners of overlapping sets have all of theirs or none, and nobody deadlocks", "whoever changes keys alone does not make all a part",
	}},
	{"all is a batch whose grants are taken back", (*mutant).takingBack, []string{
		"a loser of all leaves owners, tokens and expiries as they are, and makes no row",
	}},
	{"all leaves free rows behind when it loses", func(m *mutant) {
		m.answersAll(func(reqs []lease.AcquireRequest, answers []lease.Acquired) []lease.Acquired {
			for _, q := range reqs {
				if _, ok := m.row(q.Key); !ok {
					m.SetToken(q.Key, 1)
				}
			}
			return answers
		})
	}, []string{"a loser of all leaves owners, tokens and expiries as they are, and makes no row"}},
	{"all is answered in another order", func(m *mutant) {
		m.answersAll(func(_ []lease.AcquireRequest, answers []lease.Acquired) []lease.Acquired {
			return append(answers[1:], answers[0])
		})
	}, []string{"all are answered in the order of the requests", "a loser of all hears of every holder"}},
	{"all stops at the first that is held", func(m *mutant) {
		m.answersAll(func(_ []lease.AcquireRequest, answers []lease.Acquired) []lease.Acquired {
			seen := false
			for i, a := range answers {
				answers[i].Possible = a.Possible || seen
				seen = seen || !a.Possible && !a.Granted
			}
			return answers
		})
	}, []string{"a loser of all hears of every holder"}},
	{"all takes what is held", func(m *mutant) {
		m.eachAll(func(q lease.AcquireRequest) lease.Acquired { return m.force(q, 0) })
	}, []string{
		"where one key is held none is granted", "owners of overlapping sets have all of theirs or none, and nobody deadlocks",
	}},
	{"all leaves expired leases alone", func(m *mutant) {
		m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			for _, q := range reqs {
				if row, _ := m.row(q.Key); !row.Owner.IsZero() && !row.Held {
					return make([]lease.Acquired, len(reqs)), nil
				}
			}
			return m.fencing.AcquireAll(ctx, reqs)
		}
	}, []string{"keys that are absent, free and expired are granted together"}},
	{"all asked for again is refused", func(m *mutant) {
		m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if row, _ := m.row(reqs[0].Key); row.Held {
				return make([]lease.Acquired, len(reqs)), nil
			}
			return m.fencing.AcquireAll(ctx, reqs)
		}
	}, []string{"all asked for again are the same leases, not extended"}},
	{"all is one lock", func(m *mutant) {
		m.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			for _, row := range m.rows() {
				_, _ = m.fencing.Release(ctx, []lease.Lease{row})
			}
			return m.fencing.Release(ctx, leases)
		}
	}, []string{"of keys that were acquired together each can be released by itself"}},
	{"all counts past the last token", func(m *mutant) {
		m.eachAll(func(q lease.AcquireRequest) lease.Acquired {
			a := m.ask(q)
			return lease.Acquired{Granted: true, Token: a.Token + 1}
		})
	}, []string{"all of which one has exhausted its tokens are refused"}},
	{"all takes anything", func(m *mutant) {
		m.eachAll(func(q lease.AcquireRequest) lease.Acquired {
			if q.Owner.IsZero() || q.Key == "" {
				q = request("somebody's", lease.NewOwner())
			}
			return m.ask(q)
		})
	}, []string{"a key that comes twice among all is refused", "a request for nobody or for a bad key refuses all"}},
	{"all of nothing is an error", func(m *mutant) {
		m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if len(reqs) == 0 {
				return nil, lease.ErrConfig
			}
			return m.fencing.AcquireAll(ctx, reqs)
		}
	}, []string{"all of nothing is nothing"}},
	{"all takes a hundred at most", func(m *mutant) {
		m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := m.fencing.AcquireAll(ctx, reqs[:min(100, len(reqs))])
			for len(answers) < len(reqs) {
				answers = append(answers, lease.Acquired{Granted: true, Token: 1})
			}
			return answers, err
		}
	}, []string{"500 keys are granted together"}},
}

// takingBack makes all what a store can do that has nothing but batches.
func (m *mutant) takingBack() {
	m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		answers, err := m.Store.Acquire(ctx, reqs)
		granted, _ := whole(reqs, answers)
		for i := range answers {
			if !granted && answers[i].Granted {
				m.free(lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner})
				answers[i] = lease.Acquired{Possible: true}
			}
		}
		return answers, err
	}
}

func (m *mutant) answersAll(change func(reqs []lease.AcquireRequest, answers []lease.Acquired) []lease.Acquired) {
	m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		answers, err := m.fencing.AcquireAll(ctx, reqs)
		if len(answers) == 0 {
			return answers, err
		}
		return change(reqs, answers), err
	}
}

func (m *mutant) eachAll(answer func(q lease.AcquireRequest) lease.Acquired) {
	m.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		return each(ctx, reqs, answer)
	}
}

func (m *mutant) AcquireAll(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return m.all(ctx, reqs)
}

// rows are the leases of all rows.
func (m *mutant) rows() (leases []lease.Lease) {
	records, _ := m.Inspect(context.Background(), lease.Filter{})
	for _, r := range records {
		leases = append(leases, r.Lease)
	}
	return leases
}
