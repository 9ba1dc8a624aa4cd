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

// id are the parameters that name the row, and what others go before it.
func (c OnceClaim) id(before ...any) []any { return append(before, c.Tenant, c.Key) }

// Args are the parameters of once-claim: tenant, key, fingerprint, how long to keep it in µs, and what others a section has.
func (c OnceClaim) Args(more ...any) []any {
	return append(c.id(), append([]any{c.Fingerprint, Micros(c.Keep)}, more...)...)
}

// OnceState says what a claim has found.
type OnceState int64

// The states of a OnceRow, as the statements return them.
const (
	OnceAbsent   OnceState = iota // no row that could be seen: look again
	OnceMine                      // the row is made, by this transaction
	OnceDone                      // committed by another
	OnceExpired                   // committed by another, and kept for long enough
	OnceInFlight                  // another transaction has the key, and did not end in time
)

// OnceRow is a row, or the lack of one.
type OnceRow struct {
	State       OnceState
	Fingerprint []byte
	Result      []byte
}

// Dest is what to scan the row into.
func (r *OnceRow) Dest() []any { return []any{&r.State, &r.Fingerprint, &r.Result} }

// LookOnce reads the row with a dialect's once-look section.
func LookOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim) (r OnceRow, err error) {
	err = tx.QueryOne(ctx, d.Text("once-look"), c.id(), r.Dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return OnceRow{State: OnceAbsent}, nil
	}
	return r, err
}

// TakeOnce takes an expired row over. Not taken: another has, or it was removed.
func TakeOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim) (taken bool, err error) {
	n, err := tx.Exec(ctx, d.Text("once-take"), c.id(c.Fingerprint, Micros(c.Keep)))
	return n > 0, err
}

// StoreOnce writes the result into the row that this transaction has made. Not stored: the row is not there any more, because the
// transaction was rolled back behind its user's back, as InnoDB does when there is a deadlock.
func StoreOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim, result []byte) (stored bool, err error) {
	n, err := tx.Exec(ctx, d.Text("once-store"), c.id(result))
	return n > 0, err
}

// ConfirmOnce writes to a row that was read, in tx. Once tx is committed and acknowledged, so is the transaction that made the row.
func ConfirmOnce(ctx context.Context, tx lease.Runner, d Texts, c OnceClaim) (confirmed bool, err error) {
	n, err := tx.Exec(ctx, d.Text("once-confirm"), c.id())
	return n > 0, err
}

// SweepOnce removes up to batch expired rows that nobody has locked.
func SweepOnce(ctx context.Context, s *Session, d Texts, batch int) (int64, error) {
	return s.Change(ctx, d.Text("once-sweep"), batch)
}
