package table

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Open connects the lanes, probes the server and the tables, and runs every kind of statement once on a key of its own, so
// that a missing privilege, a trigger or a row policy is found now and not at the first renewal.
func Open(ctx context.Context, db lane.DB, d *sqlstore.Dialect, o Options) (*Store, sqlstore.Facts, error) {
	s := &Store{d: d, strategy: o.Strategy, limit: cmp.Or(o.Limit, usualLimit), single: o.Lanes < 2}
	s.hints.open(db, o)
	var facts sqlstore.Facts
	if err := d.CheckNames(); err != nil {
		return nil, facts, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, facts, s.explain("connect", "", sqlstore.NotSent{Err: err})
	}
	facts, err = d.Probe(ctx, conn)
	if err == nil {
		err = sqlstore.CheckVersion(facts.SchemaVersion)
	}
	if err == nil {
		err = conn.QueryRowContext(ctx, d.Text("instance")).Scan(&s.instance)
	}
	if err == nil && o.Evicts && d.Evictor != nil {
		err = warn(ctx, d.Evictor, conn, &facts)
	}
	err = oneline.Join(err, conn.Close())
	if err != nil {
		return nil, facts, s.refusal(err)
	}
	return s, facts, s.start(ctx, db, o)
}

// refusal leaves an error that already is one of ours alone.
func (s *Store) refusal(err error) error {
	if sqlstore.IsRefusal(err) {
		return err
	}
	return s.explain("probe", "", sqlstore.NotSent{Err: err}) // it only read
}

func (s *Store) start(ctx context.Context, db lane.DB, o Options) (err error) {
	s.lanes, err = lane.Open(ctx, lane.Config[call]{
		DB: db, Lanes: o.Lanes, Timeout: o.Timeout, Setup: s.d.Setup, Run: s.run, Merge: mostMerged,
	})
	if err != nil {
		return s.explain("connect", "", sqlstore.NotSent{Err: err})
	}
	// A busy database is not a refusal: many processes may be opening it at this moment.
	for err = s.rehearse(ctx, o); errors.Is(err, lease.ErrBusy) && pause(ctx, 50*time.Millisecond) == nil; {
		err = s.rehearse(ctx, o)
	}
	if err == nil {
		return nil
	}
	s.lanes.Close()
	if errors.Is(err, lease.ErrPrivilege) {
		p, rows, floors := s.d.Names().Prefix, "SELECT, INSERT, UPDATE and DELETE", "SELECT and UPDATE"
		if o.Optimistic {
			rows, floors = "SELECT, INSERT and UPDATE", "SELECT"
		}
		err = fmt.Errorf("%w; the user needs %s on %srowlock, %s on %srowlock_floor, SELECT, INSERT, UPDATE and DELETE on %srowlock_queue, SELECT on %srowlock_meta", err, rows, p, floors, p, p, p)
	}
	return fmt.Errorf("rehearsing every statement on a key of its own: %w", err)
}

// rehearse acquires, renews and releases a key nobody else has, twice, because a row that is new is made by another statement
// than one that is there, has somebody wait for it, and reaps it. Each time it looks whether that has happened: a trigger or a row
// policy can have a write vanish without an error.
func (s *Store) rehearse(ctx context.Context, o Options) error {
	key := lease.Reserved + "open/" + lease.NewOwner().String()
	l := lease.Lease{Key: key}
	for range 2 {
		next, err := s.rehearseAcquire(ctx, key)
		if err == nil && next.Token <= l.Token {
			err = vanished("a token did not grow")
		}
		if err != nil {
			return err
		}
		l = next
		if err := s.rehearseHold(ctx, l); err != nil {
			return err
		}
	}
	if !o.Optimistic {
		if err := s.rehearseQueue(ctx, key); err != nil {
			return err
		}
	}
	if err := s.rehearseInterest(ctx, key); err != nil {
		return err
	}
	return s.rehearseReap(ctx, key, o)
}

// rehearseReap removes the row. Who may not, and need not, leaves it to those who sweep.
func (s *Store) rehearseReap(ctx context.Context, key string, o Options) error {
	_, err := s.reap(ctx, lease.Bucket(key), []string{key}, 0)
	if o.Optimistic && errors.Is(err, lease.ErrPrivilege) {
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{key}})
	if err == nil && len(rows) > 0 {
		err = vanished("a dead row was not removed")
	}
	return err
}

func (s *Store) rehearseAcquire(ctx context.Context, key string) (lease.Lease, error) {
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: rehearsalTTL, Note: "rowlock.Open"}
	got, err := s.Acquire(ctx, []lease.AcquireRequest{r})
	if err == nil && !got[0].Granted || errors.Is(err, sqlstore.ErrRowShape) {
		err = vanished("a key that nobody has was not granted")
	}
	return lease.Lease{Key: key, Owner: r.Owner, Token: got[0].Token}, err
}

const rehearsalTTL = 30 * time.Second

// rehearseHold renews and releases. A released row may be gone at once, if another client sweeps without retention.
func (s *Store) rehearseHold(ctx context.Context, l lease.Lease) error {
	if err := s.rehearseRenew(ctx, l); err != nil {
		return err
	}
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{l.Key}})
	if err == nil && (len(rows) != 1 || rows[0].Lease != l || rows[0].Remaining <= rehearsalTTL) {
		err = vanished("a lease that was granted a moment ago was not renewed")
	}
	if err != nil {
		return err
	}
	if _, err := s.Release(ctx, []lease.Lease{l}); err != nil {
		return err
	}
	rows, err = s.Inspect(ctx, lease.Filter{Keys: []string{l.Key}})
	if err == nil && len(rows) > 0 && rows[0].Held {
		err = vanished("a lock that was given back is still held")
	}
	return err
}

// rehearseRenew asks again for a second where the answer is busy: in SQLite any other transaction makes it so.
func (s *Store) rehearseRenew(ctx context.Context, l lease.Lease) error {
	for began := time.Now(); ; {
		renewed, err := s.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: 2 * rehearsalTTL}})
		if err != nil || renewed[0].Outcome != lease.Busy || time.Since(began) > time.Second {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func vanished(what string) error {
	return fmt.Errorf("%w: %s: is there a trigger or a row policy on the table?", lease.ErrCorrupt, what)
}

// warn adds to the facts what this user lacks to free a key that a vanished client keeps locked.
func warn(ctx context.Context, e sqlstore.Evictor, conn *sql.Conn, facts *sqlstore.Facts) error {
	grant, err := e.MayEvict(ctx, conn)
	if err == nil && grant != "" {
		facts.Warnings = append(facts.Warnings, "the user may not see which session has a row locked, so a client that vanishes inside a transaction "+
			"that fences keeps its key until the server's TCP keepalive; "+grant+", or make Config.EvictAfter negative")
	}
	return err
}
