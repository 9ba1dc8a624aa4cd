package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// verdicts maps SQLSTATE codes, or their two-character class, to what they mean for a single
// autocommitted statement. https://www.postgresql.org/docs/current/errcodes-appendix.html. What is
// absent here is unknown: "connection failure" (08) or "admin shutdown" (57P01) do not say whether
// the commit came first.
var verdicts = map[string]sqlstore.Verdict{
	"40001": {Class: sqlstore.Conflict}, // serialization failure
	"40P01": {Class: sqlstore.Conflict}, // deadlock
	"55P03": {Class: sqlstore.Conflict}, // lock_timeout, NOWAIT
	// Statement_timeout before the commit; during a sync-rep wait it is a warning
	"57014": {Class: sqlstore.Conflict},
	"53":    {Class: sqlstore.Conflict}, // out of memory, disk, connections
	"25006": {Class: sqlstore.Unfit, As: lease.ErrReadOnly},
	"57P03": {Class: sqlstore.Unfit}, // cannot connect now
	"42P01": {Class: sqlstore.Refused, As: lease.ErrNoSchema},
	"3F000": {Class: sqlstore.Refused, As: lease.ErrNoSchema},
	"42703": {Class: sqlstore.Refused, As: lease.ErrSchemaVersion},
	"42501": {Class: sqlstore.Refused, As: lease.ErrPrivilege},
	"22003": {Class: sqlstore.Refused, As: lease.ErrTokenExhausted},
	// No difference from 'infinity', which only another hand than rowlock's writes
	"22008": {Class: sqlstore.Refused, As: lease.ErrCorrupt},
	// A constraint that rowlock itself keeps
	"23": {Class: sqlstore.Refused, As: lease.ErrCorrupt},
	// RAISE, also by a deferred constraint trigger at COMMIT, which then rolls back
	"P0":    {Class: sqlstore.Refused, As: sqlstore.ErrRaised},
	"P0RLF": {Class: sqlstore.Refused, As: lease.ErrFenced}, // a protected table's: schema.Protect
	"22":    {Class: sqlstore.Refused},                      // data
	"42":    {Class: sqlstore.Refused},                      // syntax
	"26000": {Class: sqlstore.Unfit, As: errPrepared},
	// a prepared statement is gone: DISCARD ALL, or a pooler
	"42P05": {Class: sqlstore.Unfit, As: errPrepared}, // the name is taken: a pooler
	"0A000": {Class: sqlstore.Unfit},
	// "cached plan must not change result type", after a migration
	"25P02": {Class: sqlstore.Refused}, // in a failed transaction
}

// sqlState is what the errors of pgx and lib/pq have in common.
type sqlState interface{ SQLState() string }

// Classify returns what err means. It recognizes pgx and lib/pq by their SQLState method.
func (d *database) Classify(err error) sqlstore.Verdict {
	if errors.Is(err, pgx.ErrTxCommitRollback) { // an earlier statement had failed unnoticed
		return sqlstore.Verdict{Class: sqlstore.Refused}
	}
	var state sqlState
	if !errors.As(err, &state) {
		return sqlstore.Verdict{Class: sqlstore.Unknown}
	}
	code := state.SQLState()
	if code == "0A000" && strings.Contains(err.Error(), "infinity") {
		code = "22008" // "cannot convert infinity to bigint": no other connection can either
	}
	if code == "22P02" && strings.Contains(err.Error(), anotherServer) {
		return sqlstore.Verdict{Class: sqlstore.Unfit}
	}
	if code == "22P02" && strings.Contains(err.Error(), unreleased) {
		return sqlstore.Verdict{Class: sqlstore.Refused, As: lease.ErrFenced}
	}
	if code == "22P02" && strings.Contains(err.Error(), readOnly) {
		code = "25006"
	}
	if v, ok := verdicts[code]; ok || len(code) < 2 {
		return v
	}
	return verdicts[code[:2]]
}

// Native knows SQLSTATE codes, and pgx's errors about a transaction that is over or has not begun,
// and a connection on which nothing could be sent.
func (d *database) Native(err error) bool {
	return errors.As(err, new(sqlState)) || errors.Is(err, pgx.ErrTxClosed) ||
		errors.Is(err, errBegin) || pgconn.SafeToRetry(err)
}

func isState(err error, code string) bool {
	var state sqlState
	return errors.As(err, &state) && state.SQLState() == code
}
