package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Once is a Dialect that can keep what was done once, by key, in the transaction that does it. A row is there for everybody else
// exactly if that transaction was committed; until it has ended, nobody else can claim the key.
type Once interface {
	// ClaimOnce makes the key's row in tx, or says what row there is. It waits for another transaction that has the key, for
	// about wait; 0 means not at all, as far as the database can be told so. After OnceInFlight tx is to be rolled back. Together
	// with an error it says that this was brought about by another who claims the key.
	ClaimOnce(ctx context.Context, tx lease.Runner, c OnceClaim, wait time.Duration) (OnceRow, error)
	// ProbeOnce looks at what a crash or a missing right would do to the table.
	ProbeOnce(ctx context.Context, conn *sql.Conn) error
	// Collided reports whether err means that the transaction was ended, or cannot go on, because of another at the same
	// moment, so that running all of it again is what the database asks for. A lock timeout is not that.
	Collided(err error) bool
}

// OncePeeker is a Once whose claims cannot be told not to wait.
type OncePeeker interface {
	// PeekOnce reports whether another transaction has the key's row locked. It is to be asked outside of any transaction, whose
	// locks on what is not there would be in the way of other keys.
	PeekOnce(ctx context.Context, on lease.Runner, c OnceClaim) (inFlight bool, err error)
}

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
func LookOnce(ctx context.Context, tx lease.Runner, d Dialect, c OnceClaim) (r OnceRow, err error) {
	err = tx.QueryOne(ctx, d.Text("once-look"), c.id(), r.Dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return OnceRow{State: OnceAbsent}, nil
	}
	return r, err
}

// TakeOnce takes an expired row over. Not taken: another has, or it was removed.
func TakeOnce(ctx context.Context, tx lease.Runner, d Dialect, c OnceClaim) (taken bool, err error) {
	n, err := tx.Exec(ctx, d.Text("once-take"), c.id(c.Fingerprint, Micros(c.Keep)))
	return n > 0, err
}

// StoreOnce writes the result into the row that this transaction has made. Not stored: the row is not there any more, because the
// transaction was rolled back behind its user's back, as InnoDB does when there is a deadlock.
func StoreOnce(ctx context.Context, tx lease.Runner, d Dialect, c OnceClaim, result []byte) (stored bool, err error) {
	n, err := tx.Exec(ctx, d.Text("once-store"), c.id(result))
	return n > 0, err
}

// ConfirmOnce writes to a row that was read, in tx. Once tx is committed and acknowledged, so is the transaction that made the row.
func ConfirmOnce(ctx context.Context, tx lease.Runner, d Dialect, c OnceClaim) (confirmed bool, err error) {
	n, err := tx.Exec(ctx, d.Text("once-confirm"), c.id())
	return n > 0, err
}

// SweepOnce removes up to batch expired rows that nobody has locked.
func SweepOnce(ctx context.Context, s *Session, d Dialect, batch int) (int64, error) {
	res, err := s.Exec(ctx, d.Text("once-sweep"), batch)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
