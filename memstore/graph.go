package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Graph = (*Store)(nil)

// record is what one chain has said of itself.
type record struct {
	lease.Caller
	by           lease.Party
	since, until time.Time
	awaits       map[string]lease.Token // the tokens that its keys had
}

// Record notes what chains hold and wait for. See [lease.Graph].
func (s *Store) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, life time.Duration,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, c := range chains {
		since, until := now.Add(-c.Waited), now.Add(life)
		if old := s.chains[c.ID]; old != nil {
			since = old.since
			if latest := since.Add(c.Waited + life); latest.Before(until) {
				until = latest
			}
		}
		c.Holds, c.Wants = slices.Clone(c.Holds), slices.Clone(c.Wants)
		c.Shares = slices.Clone(c.Shares)
		s.chains[c.ID] = &record{
			Caller: c, by: by, since: since, until: until,
			awaits: s.tokensLocked(slices.Concat(c.Wants, c.Shares)),
		}
	}
	return nil
}

func (s *Store) tokensLocked(keys []string) map[string]lease.Token {
	tokens := make(map[string]lease.Token, len(keys))
	for _, key := range keys {
		if r := s.rows[key]; r != nil {
			tokens[key] = r.token
		}
	}
	return tokens
}

// Erase removes the records. See [lease.Graph].
func (s *Store) Erase(ctx context.Context, chains []lease.Caller) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range chains {
		delete(s.chains, c.ID)
	}
	return nil
}

// Edges follows the waits of these chains. See [lease.Graph].
func (s *Store) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) (edges []lease.Edge, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, reached := time.Now(), make(map[lease.Owner]bool)
	for ahead := slices.Clone(from); len(ahead) > 0; ahead = ahead[1:] {
		c := s.chains[ahead[0]]
		if c == nil || reached[c.ID] || c.by.Process != by.Process {
			continue
		}
		reached[c.ID] = true
		for _, e := range s.edgesLocked(now, c) {
			edges, ahead = append(edges, e), append(ahead, e.To)
		}
	}
	return edges[:min(len(edges), limit)], nil
}

// edgesLocked returns the edges of one chain.
func (s *Store) edgesLocked(now time.Time, c *record) (edges []lease.Edge) {
	for i, key := range slices.Concat(c.Wants, c.Shares) {
		r := s.rows[key]
		if r == nil || r.placement != lease.PlacementTable || !r.held(now) ||
			r.token != c.awaits[key] || !now.Before(c.until) {
			continue
		}
		if i >= len(c.Wants) && r.members != nil { // it may join them
			continue
		}
		since := c.since.Add(c.Waited - cmp.Or(c.Each[key], c.Waited))
		for _, h := range s.chains {
			if h.by.Process != c.by.Process || !now.Before(h.until) || !h.holds(key, r.token) {
				continue
			}
			edges = append(edges, lease.Edge{
				From: c.ID, To: h.ID, Key: key, Token: r.token, Identity: c.by.Identity,
				Since: since.Sub(s.born), Until: c.until.Sub(s.born), Waited: now.Sub(since),
			})
		}
	}
	slices.SortFunc(edges, func(a, b lease.Edge) int { return cmp.Compare(a.Key, b.Key) })
	return edges
}

func (r *record) holds(key string, token lease.Token) bool {
	return slices.ContainsFunc(r.Holds, func(l lease.Lease) bool {
		return l.Key == key && l.Token == token
	})
}

// sweepChains removes the records of what has died.
func (s *Store) sweepChains(now time.Time, retention time.Duration) {
	for id, r := range s.chains {
		if now.Sub(r.until) >= retention {
			delete(s.chains, id)
		}
	}
}
