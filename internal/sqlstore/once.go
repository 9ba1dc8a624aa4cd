package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// OnceClaim is a key to claim.
type OnceClaim struct {
	Tenant, Key []byte
	Fingerprint []byte // not nil
	Keep        time.Duration
}

// ID returns the parameters that name the row, after those in before.
func (c OnceClaim) ID(before ...any) []any { return append(before, c.Tenant, c.Key) }

// Args returns the parameters of once-claim: tenant, key, fingerprint, retention in µs, and what
// else a section has.
func (c OnceClaim) Args(more ...any) []any {
	return append(c.ID(), append([]any{c.Fingerprint, conn.Micros(c.Keep)}, more...)...)
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
	err = tx.QueryOne(ctx, d.Text("once-look"), c.ID(), r.Dest()...)
	if errors.Is(err, sql.ErrNoRows) {
		return OnceRow{State: OnceAbsent}, nil
	}
	return r, err
}
