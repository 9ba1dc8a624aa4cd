package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// OnceClaim is a key to claim.
type OnceClaim struct {
	Tenant, Key []byte
	Fingerprint []byte // not nil
	Keep        time.Duration
}

// id returns the parameters that name the row, after those in before.
func (c OnceClaim) id(before ...any) []any { return append(before, c.Tenant, c.Key) }

// Args returns the parameters of once-claim: tenant, key, fingerprint, retention in µs, and what
// else a section has.
func (c OnceClaim) Args(more ...any) []any {
	return append(c.id(), append([]any{c.Fingerprint, Micros(c.Keep)}, more...)...)
}

// OnceState is the result of a claim.
type OnceState int64

// The states of a OnceRow, as the statements return them.
const (
	OnceAbsent   OnceState = iota // no row is visible: look again
	OnceMine                      // this transaction has made the row
	OnceDone                      // committed by another transaction
	OnceExpired                   // committed by another transaction, and past its retention
	OnceInFlight                  // another transaction has the key, and did not end in time
	OnceCorrupt                   // the row has no expiry, so that nothing could take it over
)

// OnceRow is a row, or the lack of one.
type OnceRow struct {
	State       OnceState
	Fingerprint []byte
	Result      []byte
}

// Dest returns the destinations of the row's columns.
func (r *OnceRow) Dest() []any { return []any{&r.State, &r.Fingerprint, &r.Result} }

// LookOnce reads the row with the once-look section.
func LookOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim) (r OnceRow, err error) {
	err = tx.QueryOne(ctx, d.Text("once-look"), c.id(), r.Dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return OnceRow{State: OnceAbsent}, nil
	}
	return r, err
}

// TakeOnce takes an expired row over. It is not taken if another transaction has taken it, or if it
// was removed.
func TakeOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim) (taken bool, err error) {
	n, err := tx.Exec(ctx, d.Text("once-take"), c.id(c.Fingerprint, Micros(c.Keep)))
	return n > 0, err
}

// StoreOnce writes the result into the row that this transaction has made. It is not stored if the
// row has vanished, because the server has rolled the transaction back unnoticed, as InnoDB does
// after a deadlock.
func StoreOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim, result []byte) (
	stored bool, err error,
) {
	n, err := tx.Exec(ctx, d.Text("once-store"), c.id(result))
	return n > 0, err
}

// CountOnce returns how many rows a request's tenant has, up to most.
func CountOnce(ctx context.Context, run lease.Runner, d Texts, c OnceClaim, most int) (n int, err error) {
	err = run.QueryOne(ctx, d.Text("once-count"), []any{c.Tenant, most}, &n)
	return n, err
}

// ConfirmOnce writes to a row that was read, in tx. Once tx is committed and acknowledged, so is
// the transaction that made the row.
func ConfirmOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim) (
	confirmed bool, err error,
) {
	n, err := tx.Exec(ctx, d.Text("once-confirm"), c.id())
	return n > 0, err
}

// SweepOnce removes up to batch expired rows that no transaction has locked.
func SweepOnce(ctx context.Context, s *Session, d Texts, batch int) (int64, error) {
	return s.Change(ctx, d.Text("once-sweep"), batch)
}
