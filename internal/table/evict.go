package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Evictor = (*Store)(nil)

const (
	// evictTimeout bounds an eviction. One pinned connection waits for the row, for a second, and
	// another looks which session blocks it.
	evictTimeout = 3 * time.Second
	// lookPause is the least pause between two looks: MariaDB refreshes what it shows when none has
	// looked for 0.1 s. Clients that all paused for as long would hide from each other, for ever, the
	// sessions that they look for; so a pause is drawn, of up to three times as much.
	lookPause  = 150 * time.Millisecond
	neverAsOld = 100 * 365 * 24 * time.Hour // as no transaction is
)

// Evict has one pinned connection wait for the row and another end the session that blocks it. The
// statement that finds the session also checks that the row is still expired and still locked by
// it.
func (s *Store) Evict(ctx context.Context, key string, least time.Duration) (
	[]lease.Evicted, error,
) {
	if s.d.Evictor == nil || s.single {
		return nil, fmt.Errorf("%w: evict: it takes a database server and two pinned connections", lease.ErrUnsupported)
	}
	looks := least < 0
	if looks {
		least = neverAsOld
	}
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	row, err := s.lateAs(ctx, key)
	if err != nil {
		return nil, err
	}
	found, err := s.blockers(ctx, row, least)
	return told(found, looks), err
}

// blockers returns what makes a pinned connection wait for the row, and ends what is old enough.
func (s *Store) blockers(
	ctx context.Context, row sqlstore.Expired, least time.Duration,
) (out []sqlstore.Blocker, err error) {
	waiting, over := make(chan int64, 1), make(chan error, 1)
	waiter := s.newOp(conn.Acquire, task{
		patience: evictTimeout,
		other: func(ctx context.Context, session *conn.Session) error {
			return sqlstore.AwaitRow(ctx, session, s.d, row, func(id int64) { waiting <- id })
		},
	})
	go func() { over <- s.once(ctx, waiter) }()
	select {
	case id := <-waiting:
		out, err = s.endBlockers(ctx, row, id, least, over)
	case err = <-over: // the waiter never came to wait, or has the row by now
	}
	if err != nil {
		return nil, s.explain("evict", row.Key, err)
	}
	return out, nil
}

// lateAs says how key may have expired: as a shared one if a reader group without a live member
// holds it.
func (s *Store) lateAs(ctx context.Context, key string) (sqlstore.Expired, error) {
	late := sqlstore.Expired{Key: key, Why: sqlstore.LateLease}
	if s.sets.Need(sqlstore.Shared) != nil {
		return late, nil
	}
	groups, err := s.groups(ctx, []string{key})
	if t, shared := groups[key]; shared && t.members == 0 {
		late.Why = sqlstore.LateGroup
	}
	return late, err
}

// endBlockers looks until the wait ends, which is for one reader after the other.
func (s *Store) endBlockers(
	ctx context.Context, row sqlstore.Expired, waiter int64, least time.Duration,
	over <-chan error,
) (out []sqlstore.Blocker, _ error) {
	for {
		var found []sqlstore.Blocker
		look := s.newOp(conn.Release,
			task{other: func(ctx context.Context, session *conn.Session) (err error) {
				found, err = s.d.Evictor.EndBlockers(ctx, session, row, waiter, least)
				return err
			}})
		if err := s.once(ctx, look); err != nil {
			<-over
			return nil, err
		}
		for _, b := range found {
			same := func(o sqlstore.Blocker) bool { o.Age = b.Age; return o == b }
			if !slices.ContainsFunc(out, same) {
				out = append(out, b)
			}
		}
		select {
		case <-over: // the wait ends with the last session, or after a second
			return out, nil
		case <-time.After(lookPause + rand.N(2*lookPause)):
		}
	}
}

// told returns the blockers worth reporting, or all: one that is too young is read again later.
func told(found []sqlstore.Blocker, all bool) (out []lease.Evicted) {
	for _, b := range found {
		if b.Ended || !b.Own || all {
			out = append(out, b.Evicted)
		}
	}
	return out
}
