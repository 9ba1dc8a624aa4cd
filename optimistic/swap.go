package optimistic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// swap is a dialect that locks no row that it only reads. All else is the dialect's.
type swap struct {
	sqlstore.Database
	sqlstore.Features
	*shared
}

// shared is what all sessions of a store have in common.
type shared struct {
	timeout        time.Duration // of one operation
	wait           atomic.Int64  // for how long, in ns, a statement may wait for a locked row
	probablyLocked probablyLocked
}

// swapping wraps d, and keeps its notifications of released keys.
func swapping(d *sqlstore.Dialect, timeout time.Duration) *sqlstore.Dialect {
	return d.Unswept().Wrapped(func(db sqlstore.Database, f sqlstore.Features) (sqlstore.Database, sqlstore.Features) {
		s := swap{db, f, &shared{timeout: timeout}}
		return s, sqlstore.Features{
			OneWriter:  f.OneWriter,
			Statements: sqlstore.Statements{AsStored: f.AsStored},
			OpenChecks: sqlstore.OpenChecks{CheckNames: f.CheckNames, ProbePool: f.ProbePool},
			OwnTx:      sqlstore.OwnTx{Abandon: f.Abandon, Pin: f.Pin, PinsSession: f.PinsSession},
			Instead:    sqlstore.Instead{Fence: s.fence, Reap: s.reapBucket},
			Sessions:   sqlstore.Sessions{Version: f.Version},
			Listener:   f.Listener,
		}
	})
}

// Setup bounds the wait for a locked row. A session that is shared behind a pooler is left as it
// is.
func (d swap) Setup(ctx context.Context, s *conn.Session) error {
	if err := d.Database.Setup(ctx, s); err != nil {
		return err
	}
	wait := sharedWait
	if !s.Unprepared {
		var ms int64
		if err := s.Conn().QueryRowContext(ctx, d.Text("cas-setup")).Scan(&ms); err != nil {
			return err
		}
		wait = time.Duration(ms) * time.Millisecond
	}
	// For the batch, for one lease by itself, and for the read.
	if least := wait * 5 / 2; d.timeout < least {
		return fmt.Errorf("%w: Timeout (%s) must be at least %s: a statement here may wait %s for a "+
			"locked row, and one such row would keep all leases from being renewed",
			lease.ErrConfig, d.timeout, least, wait)
	}
	d.wait.Store(int64(wait))
	return nil
}

// sharedWait is the bound that each transaction has in a session that other clients share.
const sharedWait = time.Second

// seen is a row as it was read.
type seen struct {
	sqlstore.Answer
	owner   []byte
	expires int64
}

// free reports whether the row has no owner, or one whose lease has expired, by the database's
// clock when it was read.
func (r seen) free() bool { return r.State == sqlstore.StateFree || r.State == sqlstore.StateLocked }

func (d swap) look(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (row seen, err error) {
	err = s.QueryRow(ctx, d.Text("cas-look"), []any{conn.Bytes(r.Owner), []byte(r.Key)},
		append(row.Dest(), &row.owner, &row.expires)...)
	return row, err
}

// Acquire reads the row and takes it if it is free and still as it was read. A refused caller only
// reads. The strategy does not matter, because there is one order.
func (d swap) Acquire(
	ctx context.Context, s *conn.Session, _ adapter.Strategy, r lease.AcquireRequest,
) (lease.Acquired, error) {
	row, err := d.look(ctx, s, r)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return d.make(ctx, s, r)
	case err != nil:
		return lease.Acquired{}, err
	case !row.free():
		return row.Acquired(nil)
	}
	n, err := d.take(ctx, s, r, row)
	switch {
	case err == nil && n == 1:
		return (&sqlstore.Answer{State: sqlstore.StateMine, Token: s.Next(row.Token)}).Acquired(nil)
	case err != nil && sqlstore.Judge(d, err).Class != sqlstore.Conflict:
		return lease.Acquired{}, err
	}
	return d.beaten(ctx, s, r, row, err)
}

// take writes the row if it is as it was read, and still free by the clock.
func (d swap) take(ctx context.Context, s *conn.Session, r lease.AcquireRequest, row seen) (int64, error) {
	section, args := "cas-take-free", []any{
		conn.Bytes(r.Owner), d.AsStored(r.Note), conn.Micros(r.TTL),
		row.Token + 1, []byte(r.Key), row.Token,
	}
	if row.owner != nil {
		section, args = "cas-take", append(args, row.owner, row.expires)
	}
	return s.Change(ctx, d.Text(section), args...)
}

// beaten answers for a row that could not be taken, because another was faster or has it locked;
// failed says which. If it has expired, its late holder's fence may have locked it for any time, so
// that beaten does not wait again. In a file all writes wait for one another, so that a locked row
// says less and is asked for again.
func (d swap) beaten(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest, was seen, failed error,
) (lease.Acquired, error) {
	row, err := d.look(ctx, s, r)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return lease.Acquired{}, sqlstore.ErrRowShape
	case err != nil:
		return lease.Acquired{}, err
	case !row.free():
		return row.Acquired(nil)
	case failed == nil:
		return lease.Acquired{}, sqlstore.ErrRowShape // taken and released since
	case row.State == sqlstore.StateLocked && row.Token == was.Token && !d.OneWriter:
		return lease.Acquired{}, nil
	case row.State == sqlstore.StateLocked:
		return row.Acquired(nil)
	}
	return lease.Acquired{}, failed
}

// fence changes the row, in a way that no reader notices, instead of locking it, so that no other
// can take it until tx ends. Two transactions of one holder therefore take turns, while a shared
// lock would let them run side by side.
func (d swap) fence(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error {
	n, err := tx.Exec(ctx, d.Text("cas-fence"), []any{[]byte(r.Key), conn.Bytes(r.Owner), int64(r.Token)})
	if err == nil && n == 0 {
		return sql.ErrNoRows
	}
	return err
}

// Apply leaves every change to be made alone: the dialect's batches lock rows before they change
// them, which a role may lack the privilege for.
func (d swap) Apply(
	_ context.Context, _ *conn.Session, changes []sqlstore.Change, _ bool,
) ([]sqlstore.Applied, error) {
	return make([]sqlstore.Applied, len(changes)), nil
}

// ApplyAny makes none, as Apply.
func (d swap) ApplyAny(
	_ context.Context, _ *conn.Session, changes []sqlstore.Change, _ int, _ *sqlstore.Within,
) ([]sqlstore.Applied, error) {
	return make([]sqlstore.Applied, len(changes)), nil
}

// Create leaves every row to be made alone.
func (d swap) Create(_ context.Context, _ *conn.Session, changes []sqlstore.Change) ([]sqlstore.Applied, error) {
	return make([]sqlstore.Applied, len(changes)), nil
}
