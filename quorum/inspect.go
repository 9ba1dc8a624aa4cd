package quorum

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/late"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// usualLimit is what a Filter's Limit of 0 means.
const usualLimit = 1000

// Inspect lists what a majority agrees on. A key is held if a majority has its lease, with the time
// that remains of a majority's. Otherwise it is free, with a token that no grant so far is above,
// even if a minority holds it: for a failed attempt, or because members have lost the lease.
//
// It returns when the members that have answered decide every key.
func (s *Store) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if f.Limit <= 0 {
		f.Limit = usualLimit
	}
	f.Keys = slices.Clone(f.Keys) // a member may answer after the caller uses its slice again
	rest := f
	records := []lease.Record{}
	for {
		if err := s.ready(ctx, "inspect"); err != nil {
			return nil, err
		}
		page, err := s.read(ctx, rest)
		if err != nil {
			return nil, err
		}
		for _, r := range page.records(s.need) {
			if r.Held || !f.Held {
				records = append(records, r)
			}
		}
		if len(records) >= f.Limit || !page.more {
			return records[:min(len(records), f.Limit)], nil
		}
		rest.After = page.end
	}
}

// page is a part of the rows of the members that have answered.
type page struct {
	rows     map[string][]lease.Record
	answered int
	errs     []error
	// more says that a member may have rows after end, so that later keys cannot be judged.
	more bool
	end  string
}

func (s *Store) read(ctx context.Context, f lease.Filter) (*page, error) {
	p := &page{rows: make(map[string][]lease.Record)}
	run(ctx, s, round[listing]{
		what: "inspect", bound: s.cfg.Timeout, items: s.all(1), send: list(f), failed: unlisted,
		reads: true, waits: true, keys: func(*member) []string { return f.Keys },
		take: func(_ *member, answers []listing) bool {
			p.add(answers[0], f.Limit)
			return p.decided(s.need, len(s.members))
		},
	})
	if p.answered >= s.need {
		return p, nil
	}
	if err := ctx.Err(); err != nil {
		p.errs = append(p.errs, err)
	}
	return nil, late.Told(ctx, fmt.Errorf("rowlock: quorum: inspect: %d of %d members answered: %w",
		p.answered, len(s.members), orNone(oneline.Join(p.errs...))), nil)
}

// listing is what one member has listed.
type listing struct {
	rows []lease.Record
	err  error
}

func list(f lease.Filter) func(ctx context.Context, m *member) ([]listing, error) {
	return func(ctx context.Context, m *member) ([]listing, error) {
		rows, err := m.store.Inspect(ctx, f)
		if err != nil {
			return nil, err
		}
		return []listing{{rows: rows}}, nil
	}
}

func unlisted(err error) listing { return listing{err: err} }

func (p *page) add(l listing, limit int) {
	if l.err != nil {
		p.errs = append(p.errs, l.err)
		return
	}
	p.answered++
	for _, r := range l.rows {
		if r.Err == nil { // otherwise the other members say what the key is
			p.rows[r.Key] = append(p.rows[r.Key], r)
		}
	}
	if n := len(l.rows); n >= limit {
		if last := l.rows[n-1].Key; !p.more || last < p.end {
			p.more, p.end = true, last
		}
	}
}

// decided reports whether the members that have not answered can change nothing: each key has a
// majority for one lease, or too few rows for any.
func (p *page) decided(need, members int) bool {
	if p.answered < need {
		return false
	}
	left := members - p.answered - len(p.errs)
	for _, rows := range p.rows {
		if most := len(alike(rows, true)); most < need && most+left >= need {
			return false
		}
	}
	return true
}

// records merges the rows of each key, in key order.
func (p *page) records(need int) (records []lease.Record) {
	for key, rows := range p.rows {
		if !p.more || key <= p.end {
			records = append(records, merge(key, rows, need))
		}
	}
	slices.SortFunc(records, func(x, y lease.Record) int { return cmp.Compare(x.Key, y.Key) })
	return records
}

// alike returns the largest group of rows that name one lease, held or not.
func alike(rows []lease.Record, held bool) (most []lease.Record) {
	by := make(map[lease.Lease][]lease.Record)
	for _, r := range rows {
		if !r.Owner.IsZero() && (r.Held || !held) {
			by[r.Lease] = append(by[r.Lease], r)
		}
		if group := by[r.Lease]; len(group) > len(most) {
			most = group
		}
	}
	return most
}

// merge is what a majority says of a key: one lease, which may have expired, or a free key.
func merge(key string, rows []lease.Record, need int) lease.Record {
	if same := alike(rows, true); len(same) >= need {
		return agreed(same, need, true)
	}
	if same := alike(rows, false); len(same) >= need {
		return agreed(same, need, false)
	}
	free := lease.Record{Placement: rows[0].Placement}
	free.Key = key
	free.Token = reached(rows, need)
	free.Age = nth(rows, need, func(r lease.Record) time.Duration { return r.Age })
	free.Remaining = dead(rows)
	return free
}

// agreed is the record of a lease that a majority names. It lasts for as long as it has a majority,
// and began when it got one.
func agreed(rows []lease.Record, need int, held bool) lease.Record {
	r := rows[0]
	r.Held = held
	if r.Remaining = dead(rows); held {
		r.Remaining = nth(rows, need, func(r lease.Record) time.Duration { return r.Remaining })
	}
	r.Age = nth(rows, need, func(r lease.Record) time.Duration { return r.Age })
	return r
}

// reached is a token that no grant so far is above: the one that a majority has, or the largest.
func reached(rows []lease.Record, need int) (token lease.Token) {
	by := make(map[lease.Token]int)
	for _, r := range rows {
		if by[r.Token]++; by[r.Token] >= need {
			return r.Token
		}
		token = max(token, r.Token)
	}
	return token
}

// dead is since when the rows have been dead: since the last of them is.
func dead(rows []lease.Record) time.Duration {
	return min(0, nth(rows, 1, func(r lease.Record) time.Duration { return r.Remaining }))
}

// nth returns the value that so many rows reach, or the smallest of fewer rows.
func nth[T cmp.Ordered](rows []lease.Record, need int, of func(lease.Record) T) T {
	all := make([]T, len(rows))
	for i, r := range rows {
		all[i] = of(r)
	}
	slices.Sort(all)
	return all[max(0, len(all)-need)]
}
