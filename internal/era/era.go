// Package era keeps tokens growing across a failover or a restore that has forgotten grants.
//
// Each session that grants learns when it connects which history its server has, and in which era
// of the table that history is. The statements that grant have the era's start in their text, so
// that it costs no round trip, and a session that has not learned it can send none of them.
//
// A connection ends with its server, so that no session takes an old era to another one. Behind a
// pooler or a proxy it may, and there the text is an expression that fails on every server but the
// one that was asked.
package era

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// pause is between two tries to begin an era while another session does.
	pause = 20 * time.Millisecond
	// kept is how many histories the table remembers. One that is forgotten begins an era again.
	kept = 64
)

// Eras are those of one opening of the tables.
type Eras struct {
	d      *sqlstore.Dialect
	began  func(start int64)
	opened sqlstore.Opened
	newest atomic.Int64 // that any session here has learned
	last   atomic.Int64 // that is admitted, or -1
}

// New returns the eras of the tables that d speaks of. It calls began, unless that is nil, for each
// era that a session here has begun after the first. Close ends them.
func New(d *sqlstore.Dialect, began func(start int64)) *Eras {
	e := &Eras{d: d, began: began}
	e.Admit(-1)
	return e
}

// Close is for after the last session has ended.
func (e *Eras) Close() { e.opened.Close() }

// Newest is the start of the newest era that a session has learned.
func (e *Eras) Newest() int64 { return e.newest.Load() }

// Admit is the AdmitEras of a seam.EraGate.
func (e *Eras) Admit(last int64) { e.last.Store(last) }

// After returns the function that sets up a session that grants.
func (e *Eras) After(
	setup func(context.Context, *sqlstore.Session) error,
) func(context.Context, *sqlstore.Session) error {
	return func(ctx context.Context, s *sqlstore.Session) error {
		if err := setup(ctx, s); err != nil {
			return err
		}
		return e.Learn(ctx, s)
	}
}

// Learn has a session grant in the newest era of its server's history. It begins one if the table
// does not know the history, or has forgotten an era that another session here has seen. Nothing is
// granted before that has been committed.
func (e *Eras) Learn(ctx context.Context, s *sqlstore.Session) error {
	if e.d.OneHistory {
		s.EraAt(0)
		return nil
	}
	h, err := e.look(ctx, s)
	if err != nil {
		return err
	}
	for !e.knows(h) {
		if h.ReadOnly != 0 {
			return fmt.Errorf("%w: its history is new to the table, and it takes no writes",
				lease.ErrReadOnly)
		}
		switch h, err = e.begin(ctx, s); {
		case err == nil:
		case sqlstore.Judge(e.d, err).Class != sqlstore.Conflict || !retry.Sleep(ctx, pause):
			return err
		}
	}
	e.see(h.Newest)
	s.GrantIn(h.Newest, e.d.EraText(s, h), e.holds)
	return nil
}

// holds returns an error if a session must not grant in its era yet.
func (e *Eras) holds(start int64) error {
	if last := e.last.Load(); last >= 0 && start > last {
		return sqlstore.NotSent{Err: seam.ErrNewEra}
	}
	return nil
}

func (e *Eras) look(ctx context.Context, s *sqlstore.Session) (sqlstore.History, error) {
	h, err := e.d.History(ctx, s, &e.opened)
	if err == nil {
		err = check(h.Newest)
	}
	return h, err
}

func (e *Eras) knows(h sqlstore.History) bool { return h.Known > 0 && h.Newest >= e.Newest() }

func (e *Eras) see(start int64) {
	for seen := e.Newest(); seen < start && !e.newest.CompareAndSwap(seen, start); {
		seen = e.Newest()
	}
}

// begin records the server's history with the next era, unless another session has, and returns
// what the table then has. An error of its commit needs no other treatment: the next session reads
// what has become of it.
func (e *Eras) begin(ctx context.Context, s *sqlstore.Session) (h sqlstore.History, err error) {
	wrote := false
	err = s.InTx(ctx, func() error {
		for _, section := range [...]string{"era-make", "era-lock"} {
			if _, err := s.Exec(ctx, e.d.Text(section)); err != nil {
				return err
			}
		}
		if h, err = e.look(ctx, s); err != nil || e.knows(h) {
			return err
		}
		if h.Newest, err = e.next(ctx, s, h); err != nil {
			return err
		}
		h.Known, wrote = 1, h.Newest > 0
		if _, err := s.Exec(ctx, e.d.Text("era-write"), h.Name, h.Newest); err != nil {
			return err
		}
		return e.drop(ctx, s)
	})
	var open sqlstore.Unsettled
	if errors.As(err, &open) {
		err = open.Err
	}
	if err == nil && wrote && e.began != nil {
		e.began(h.Newest)
	}
	return h, err
}

// next returns the start of the era that the history h begins. The first history of new tables has
// the tokens from 1 on.
func (e *Eras) next(ctx context.Context, s *sqlstore.Session, h sqlstore.History) (int64, error) {
	if h.Recorded == 0 && h.Newest == 0 && e.Newest() == 0 {
		if fresh, err := e.fresh(ctx, s); fresh || err != nil {
			return 0, err
		}
	}
	now, err := e.Clock(ctx, s)
	if err != nil {
		return 0, err
	}
	return next(now, max(h.Newest, e.Newest()))
}

// fresh reports whether the tables were made just now and never granted a token. A backup from before
// the first client has no history, and may be restored long after.
func (e *Eras) fresh(ctx context.Context, s *sqlstore.Session) (fresh bool, err error) {
	err = s.QueryRow(ctx, e.d.Text("era-fresh"), nil, &fresh)
	return fresh, err
}

// Clock is the database's.
func (e *Eras) Clock(ctx context.Context, s *sqlstore.Session) (time.Time, error) {
	var now int64
	err := s.QueryRow(ctx, e.d.Text("era-clock"), nil, &now)
	return time.UnixMicro(now), err
}

// drop forgets all but the newest histories.
func (e *Eras) drop(ctx context.Context, s *sqlstore.Session) error {
	var oldest int64
	err := s.QueryRow(ctx, e.d.Text("era-kept"), []any{kept}, &oldest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = s.Exec(ctx, e.d.Text("era-drop"), oldest)
	}
	return err
}
