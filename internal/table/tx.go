package table

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Fence locks the row in the caller's transaction if it still names this owner and token. It uses
// no clock: a taker of an expired lease must change that row, and cannot while tx lasts.
func (s *Store) Fence(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	return s.FenceRenew(ctx, tx, lease.RenewRequest{Lease: l})
}

// inSavepoint is what the statement fails with where ROLLBACK TO would undo it; see PostgreSQL's.
const inSavepoint = "a fence inside a savepoint"

// FenceRenew is Fence, and extends the lease in the caller's transaction if it is alive and the TTL
// is not 0.
func (s *Store) FenceRenew(ctx context.Context, tx lease.Runner, r lease.RenewRequest) error {
	if r.Shared {
		return s.fenceShared(ctx, tx, r.Lease)
	}
	if s.d.Fence != nil {
		return s.inTx(ctx, tx, "fence", r.Lease, s.d.Fence(ctx, tx, r))
	}
	var one int
	args := []any{[]byte(r.Key), conn.Bytes(r.Owner), int64(r.Token), conn.Micros(r.TTL)}
	err := tx.QueryOne(ctx, s.d.Text("fence"), args, &one)
	if err != nil && strings.Contains(err.Error(), inSavepoint) {
		return fmt.Errorf("%w: fence %q: inside a savepoint (a nested transaction of pgx, gorm or bun is one), "+
			"and ROLLBACK TO it would unlock the key while the transaction goes on: fence in the outer "+
			"transaction, before the first savepoint; roll back (%w)", lease.ErrConfig, r.Key, err)
	}
	return s.inTx(ctx, tx, "fence", r.Lease, err)
}

// ReleaseTx clears the owner in the caller's transaction.
func (s *Store) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if l.Shared {
		return s.leaveTx(ctx, tx, l)
	}
	args := []any{[]byte(l.Key), conn.Bytes(l.Owner), int64(l.Token)}
	return s.finish(ctx, tx, l, s.d.Text("release-tx"), args)
}

// PassesInTx is nil with RequireSync, which is proved on pinned connections only.
func (s *Store) PassesInTx() adapter.PassInTx {
	start, text := s.eras.InTx()
	if text == "" || s.sync != nil {
		return nil
	}
	return func(ctx context.Context, tx lease.Runner, h lease.HandOver) (lease.Token, error) {
		args := []any{
			conn.Bytes(h.To.Owner), h.To.Note, conn.Micros(h.To.TTL),
			[]byte(h.From.Key), conn.Bytes(h.From.Owner), int64(h.From.Token),
		}
		err := s.finish(ctx, tx, h.From, conn.FillEra(s.d.Text("hand-over"), text), args)
		return max(h.From.Token, start) + 1, err
	}
}

// Strayed has no transaction hand a lease over until a session learns of its era again.
func (s *Store) Strayed() { s.eras.Strayed() }

// finish runs the statement after which the row no longer names l, if tx is committed.
func (s *Store) finish(ctx context.Context, tx lease.Runner, l lease.Lease, query string, args []any) error {
	if last, ok := tx.(sqlstore.Finisher); ok {
		return s.inTx(ctx, tx, "unlock", l, last.Finish(ctx, query, args))
	}
	n, err := tx.Exec(ctx, query, args)
	if err == nil && n == 0 {
		err = sql.ErrNoRows
	}
	return s.inTx(ctx, tx, "unlock", l, err)
}

// fenceShared locks the row of the member's reader group, so that whatever would end the reader
// group skips it, and the fences of other members do not.
func (s *Store) fenceShared(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	var one int
	args := []any{[]byte(l.Key), conn.Bytes(lease.ReaderGroup(l.Token)), int64(l.Token)}
	err := tx.QueryOne(ctx, s.d.Text("readers-fence"), args, &one)
	return s.inTx(ctx, tx, "fence", l, err)
}

// leaveTx removes the member in the caller's transaction. Its reader group is ended by whatever
// finds it empty afterwards: the member's own release, a taker or a sweep.
func (s *Store) leaveTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if _, fenced := tx.(sqlstore.Finisher); !fenced { // DoTx has, before its function ran
		if err := s.fenceShared(ctx, tx, l); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, s.d.Text("member-leave-tx"),
		[]any{[]byte(l.Key), conn.Bytes(lease.ReaderGroup(l.Token)), conn.Bytes(l.Owner)})
	return s.inTx(ctx, tx, "unlock", l, err)
}

func (s *Store) inTx(
	ctx context.Context, tx lease.Runner, verb string, l lease.Lease, err error,
) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return s.notMine(ctx, tx, l)
	}
	v := sqlstore.Judge(s.d, err)
	switch {
	case v.Class == sqlstore.Conflict:
		return fmt.Errorf("%w: %s %q: %w (roll back and try again; %s)",
			lease.ErrBusy, verb, l.Key, err, s.cure(err))
	case s.elsewhere(err):
		return foreign(l.Key, err)
	}
	return fmt.Errorf("rowlock: %s %q: %w", verb, l.Key, err)
}

// cure is what helps against a conflict of the caller's transaction. On SQLite an order of
// statements helps only if a snapshot is too old.
func (s *Store) cure(err error) string {
	const order, settings = "fence first in a transaction, before any read",
		"_txlock=immediate and a busy_timeout, as of sqlite.Open, have a transaction wait for its turn"
	switch {
	case !s.d.OneWriter:
		return order
	case s.d.Waited(err) == sqlstore.TooLate:
		return order + "; " + settings
	}
	return settings
}

// elsewhere reports whether err comes from another database than ours: our table is not there, or
// the error is another product's.
func (s *Store) elsewhere(err error) bool {
	v := sqlstore.Judge(s.d, err)
	return errors.Is(v.As, lease.ErrNoSchema) || v.Class == sqlstore.Unknown && !trouble(err) &&
		!s.d.Native(err)
}

// trouble reports whether err is about the connection, the transaction or its type, and says
// nothing about the database at the other end.
func trouble(err error) bool {
	for _, e := range []error{
		driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, context.Canceled, lease.ErrUnknown,
		context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, lease.ErrConfig,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

func foreign(key string, err error) error {
	return fmt.Errorf(
		"%w: %q is locked in another database than the one this transaction writes to; begin it "+
			"on the pool that was given to Open (%w)", lease.ErrForeignTx, key, err)
}

// notMine distinguishes a lost lease from a transaction of another database, where our row cannot
// be.
func (s *Store) notMine(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	var instance string
	err := tx.QueryOne(ctx, s.d.Text("instance"), nil, &instance)
	switch {
	case err != nil && s.elsewhere(err):
		return foreign(l.Key, err)
	case err != nil:
		return fmt.Errorf("rowlock: fence %q: %w", l.Key, err)
	case instance != s.instance:
		return foreign(l.Key, fmt.Errorf("its tables are %s, the lock's %s", instance, s.instance))
	}
	return fmt.Errorf("%w: %q is no longer held with token %d; roll back", lease.ErrFenced, l.Key,
		l.Token)
}
