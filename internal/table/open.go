package table

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Open connects the pinned connections, probes the server and the tables, and runs every kind of
// statement once on a key of its own, so that it finds a missing privilege, a trigger or a row
// policy before the first renewal does.
func Open(ctx context.Context, db adapter.Pool, d *sqlstore.Dialect, o Options) (
	*Store, sqlstore.Facts, error,
) {
	e := &engine{d: d, strategy: o.Strategy, limit: cmp.Or(o.Limit, usualLimit)}
	s := &Store{engine: e, single: o.Connections < 2}
	var facts sqlstore.Facts
	err := d.CheckNames()
	if err != nil {
		return nil, facts, err
	}
	located, err := d.Located(ctx, db)
	if err != nil {
		return nil, facts, s.refusal(err)
	}
	e.d, d = located, located
	s.optimistic = o.Optimistic
	s.joins.verb, s.leaves.verb, s.ends.verb = "share", "release", "end the reader group of"
	s.joins.run, s.leaves.run, s.ends.run = s.share, s.leave, s.end
	s.hints.open(db, d, o)
	s.desk.open(db, d, o)
	s.eras = era.New(d, o.Began)
	if s.sync, err = requireSync(d, o); err != nil {
		return nil, facts, err
	}
	pinned, err := db.Conn(ctx)
	if err != nil {
		return nil, facts, s.explain("connect", "", conn.NotSent{Err: err})
	}
	err = d.Unshared(ctx, pinned, func() (err error) {
		facts, err = s.examine(ctx, db, pinned, o)
		return err
	})
	if closed := pinned.Close(); !errors.Is(closed, sql.ErrConnDone) { // see Unshared
		err = oneline.Join(err, closed)
	}
	if err != nil {
		return nil, facts, s.refusal(err)
	}
	err = facts.Hidden(s.start(ctx, db, o))
	if s.sync != nil { // and the pinned connections are open
		facts.Warnings = append(facts.Warnings, s.sync.weak...)
	}
	return s, facts, err
}

// examine looks at the server and the tables.
func (s *Store) examine(ctx context.Context, db adapter.Pool, conn *sql.Conn, o Options) (
	facts sqlstore.Facts, err error,
) {
	facts, err = s.d.Probe(ctx, conn)
	s.sets = facts.Sets
	if err == nil {
		err = sqlstore.ProbeOther(ctx, db, s.d)
	}
	if err == nil {
		s.instance, err = sqlstore.InstanceOf(ctx, conn, s.d)
		s.channel = channelOf(s.instance, s.d.Names().Prefix)
	}
	if err == nil && o.Evicts && s.d.Evictor != nil {
		err = warn(ctx, s.d.Evictor, conn, &facts)
	}
	return facts, err
}

// refusal leaves an error alone that already is one of ours.
func (s *Store) refusal(err error) error {
	if sqlstore.IsRefusal(err) {
		return err
	}
	return s.explain("probe", "", conn.NotSent{Err: err}) // the probe only reads
}

func (s *Store) start(ctx context.Context, db adapter.Pool, o Options) (err error) {
	s.relax = o.Relax
	defer func() {
		if err != nil {
			s.eras.Close()
		}
	}()
	setup := s.eras.After(s.sync.after(s.setup))
	if adapter.IsReading(ctx) {
		setup = s.setup // a session that has learned no era can send no statement that grants
	}
	s.connections, err = conn.Open(ctx, conn.Config[call]{
		DB: db, Conns: o.Connections, Timeout: o.Timeout, Idle: o.Idle,
		Setup: setup, Good: s.good, Together: s.runTogether,
		Merge: mostMerged, Gather: s.gather(),
		// The next connection may fail as one did that this says of: it need not be made at once.
		ReadOnly: func(err error) bool { return s.d.ReadOnly(err) || era.IsUnlearned(err) },
	})
	if cause := errors.Unwrap(err); s.sync != nil && sqlstore.IsRefusal(cause) {
		return cause
	}
	if err != nil {
		err = s.explain("connect", "", conn.NotSent{Err: err})
		return sqlstore.ExplainPrivilege(ctx, db, s.d, err)
	}
	if adapter.IsReading(ctx) {
		return nil
	}
	// A busy database is not a refusal: many processes may open it at this moment.
	for err = s.rehearse(ctx, o); errors.Is(err, lease.ErrBusy) &&
		retry.Sleep(ctx, 50*time.Millisecond); {
		err = s.rehearse(ctx, o)
	}
	if err != nil {
		s.connections.Close()
		err = fmt.Errorf("rehearsing every statement on a key of its own: %w", err)
	}
	return sqlstore.ExplainPrivilege(ctx, db, s.d, err)
}

// setup makes a session whose releases need not wait for the disk, if the store is relaxed.
func (s *Store) setup(ctx context.Context, session *conn.Session) error {
	session.Relaxed = s.relax
	return s.d.Setup(ctx, session)
}

// warn adds to the facts the rights that this user lacks to free a key that a vanished client keeps
// locked.
func warn(ctx context.Context, e sqlstore.Evictor, conn *sql.Conn, facts *sqlstore.Facts) error {
	grant, err := e.MayEvict(ctx, conn)
	if err == nil && grant != "" {
		facts.Warnings = append(facts.Warnings,
			"the user may not see which session has a row locked, so a client that vanishes "+
				"inside a transaction that fences keeps its key until the server's TCP "+
				"keepalive; "+grant+", or make Config.EvictAfter negative")
	}
	return err
}
