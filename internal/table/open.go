package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/lease"
)

// Open connects the lanes, probes the server and the tables, and runs every kind of statement once on a key of its own, so
// that a missing privilege, a trigger or a row policy is found now and not at the first renewal.
func Open(ctx context.Context, db lane.DB, d dialect.Dialect, o Options) (*Store, dialect.Facts, error) {
	s := &Store{d: d, strategy: o.Strategy}
	var facts dialect.Facts
	if err := d.Names().Check(); err != nil {
		return nil, facts, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, facts, s.explain("connect", "", err)
	}
	facts, err = d.Probe(ctx, conn)
	if err == nil {
		err = dialect.CheckVersion(facts.SchemaVersion)
	}
	if err == nil {
		err = conn.QueryRowContext(ctx, d.Text("instance")).Scan(&s.instance)
	}
	err = errors.Join(err, conn.Close())
	if err != nil {
		return nil, facts, s.refusal(err)
	}
	return s, facts, s.start(ctx, db, o)
}

// refusal leaves an error that already is one of ours alone.
func (s *Store) refusal(err error) error {
	for _, ours := range []error{
		lease.ErrNoSchema, lease.ErrSchemaVersion, lease.ErrWrongDialect, lease.ErrReadOnly, lease.ErrPrivilege,
		lease.ErrTopology, lease.ErrNotDurable, lease.ErrConfig, lease.ErrCorrupt,
	} {
		if errors.Is(err, ours) {
			return err
		}
	}
	return s.explain("probe", "", err)
}

func (s *Store) start(ctx context.Context, db lane.DB, o Options) (err error) {
	s.lanes, err = lane.Open(ctx, lane.Config[call]{
		DB: db, Lanes: o.Lanes, Timeout: o.Timeout, Setup: s.d.Setup, Run: s.run,
	})
	if err != nil {
		return s.explain("connect", "", err)
	}
	if err := s.rehearse(ctx); err != nil {
		s.lanes.Close()
		return fmt.Errorf("rehearsing every statement on a key of its own: %w", err)
	}
	return nil
}

// rehearse acquires, renews, releases and reaps a key nobody else has.
func (s *Store) rehearse(ctx context.Context) error {
	owner := lease.NewOwner()
	key := lease.Reserved + "open/" + owner.String()
	got, err := s.Acquire(ctx, []lease.AcquireRequest{{Key: key, Owner: owner, TTL: 30 * time.Second, Note: "rowlock.Open"}})
	if err != nil {
		return err
	}
	if !got[0].Granted {
		return fmt.Errorf("%w: a key that nobody has was not granted: is there a trigger or a row policy on the table?", lease.ErrCorrupt)
	}
	l := lease.Lease{Key: key, Owner: owner, Token: got[0].Token}
	renewed, err := s.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: 30 * time.Second}})
	if err == nil && renewed[0].Outcome == lease.Lost {
		err = fmt.Errorf("%w: a lease that was granted a moment ago is gone: is there a trigger or a row policy on the table?", lease.ErrCorrupt)
	}
	if err != nil {
		return err
	}
	if _, err := s.Release(ctx, []lease.Lease{l}); err != nil {
		return err
	}
	_, err = s.reap(ctx, lease.Bucket(key), []string{key}, 0)
	return err
}
