package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// verdicts maps SQLSTATE codes, or their two-character class, to what they mean for a single autocommitted statement.
// https://www.postgresql.org/docs/current/errcodes-appendix.html. What is not here is unknown: a code that says "connection
// failure" (08) or "admin shutdown" (57P01) does not say whether the commit came first.
var verdicts = map[string]dialect.Verdict{
	"40001": {Class: dialect.Conflict}, // serialization failure
	"40P01": {Class: dialect.Conflict}, // deadlock
	"55P03": {Class: dialect.Conflict}, // lock_timeout, NOWAIT
	"57014": {Class: dialect.Conflict}, // statement_timeout before the commit; during a sync-rep wait it is a warning
	"53":    {Class: dialect.Conflict}, // out of memory, disk, connections
	"25006": {Class: dialect.Unfit, As: lease.ErrReadOnly},
	"57P03": {Class: dialect.Unfit}, // cannot connect now
	"42P01": {Class: dialect.Refused, As: lease.ErrNoSchema},
	"3F000": {Class: dialect.Refused, As: lease.ErrNoSchema},
	"42703": {Class: dialect.Refused, As: lease.ErrSchemaVersion},
	"42501": {Class: dialect.Refused, As: lease.ErrPrivilege},
	"22003": {Class: dialect.Refused, As: lease.ErrTokenExhausted},
	"23":    {Class: dialect.Refused, As: lease.ErrCorrupt}, // a constraint rowlock itself keeps to
	"22":    {Class: dialect.Refused},                       // data
	"42":    {Class: dialect.Refused},                       // syntax
	"26000": {Class: dialect.Unfit, As: errPrepared},        // prepared statement gone: DISCARD ALL, or a pooler
	"42P05": {Class: dialect.Unfit, As: errPrepared},        // there already: a pooler
	"0A000": {Class: dialect.Unfit},                         // "cached plan must not change result type", after a migration
	"25P02": {Class: dialect.Refused},                       // in a failed transaction
}

// sqlState is what the errors of pgx and lib/pq have in common.
type sqlState interface{ SQLState() string }

// Classify says what err means. It recognises pgx and lib/pq alike, by their SQLState method.
func (d *Dialect) Classify(err error) dialect.Verdict {
	if errors.Is(err, pgx.ErrTxCommitRollback) { // a statement before had failed, and nobody had said so
		return dialect.Verdict{Class: dialect.Refused}
	}
	var state sqlState
	if !errors.As(err, &state) {
		return dialect.Verdict{Class: dialect.Unknown}
	}
	code := state.SQLState()
	if v, ok := verdicts[code]; ok || len(code) < 2 {
		return v
	}
	return verdicts[code[:2]]
}

// Native knows SQLSTATE codes, and what pgx says of a transaction that is over and of a connection on which nothing could be sent.
func (d *Dialect) Native(err error) bool {
	return errors.As(err, new(sqlState)) || errors.Is(err, pgx.ErrTxClosed) || pgconn.SafeToRetry(err)
}
