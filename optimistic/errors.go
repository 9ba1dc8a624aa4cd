package optimistic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/internal/ownrows"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var (
	// ErrConflict is what a [*ConflictError] is: the row is no longer as it was read. Nothing was
	// changed. Roll back, read again, try again.
	ErrConflict = errors.New("rowlock: conflict")
	// ErrNotFound is returned by Update, Get, Select and Modify if a key has no row.
	ErrNotFound = errors.New("rowlock: no such row")
	// ErrVersion is returned by Update and Modify for a version that has no successor, before
	// anything is sent if the field has no room for it. All calls that read a row return it for a
	// version that is NULL or does not fit its field.
	ErrVersion = errors.New("rowlock: unusable version")
	// ErrMiscount is returned by Update and Modify if the database changed several rows, or none
	// although the row is as it was read. The causes are a key that is not unique, or a trigger.
	// Roll back.
	ErrMiscount = errors.New("rowlock: not one row changed")
)

// ConflictError describes what was found instead of the row that was read. errors.Is(err,
// ErrConflict) holds, and errors.As finds it as *ConflictError, also in the errors of Retry and
// Modify.
type ConflictError struct {
	Table string
	// Key is the row's, a value for each key column.
	Key []any
	// Expected is the version that was read, and Found the current one. Found is -1 if the database
	// refused the whole transaction because of the conflict and gave no version, as at REPEATABLE
	// READ on PostgreSQL, and on MariaDB with innodb_snapshot_isolation.
	Expected, Found int64
	// Err is the database's error in that case.
	Err error
}

// Error describes the conflict.
func (e *ConflictError) Error() string {
	found := fmt.Sprintf("has version %d now", e.Found)
	if e.Found < 0 {
		found = fmt.Sprintf("was changed meanwhile (%v)", e.Err)
	}
	return fmt.Sprintf("rowlock: conflict: %s %s was read with version %d and %s: roll back, read it "+
		"again and try again", e.Table, keyText(e.Key), e.Expected, found)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Unwrap returns Err.
func (e *ConflictError) Unwrap() error { return e.Err }

// keyText shows a key in messages.
func keyText(key []any) string {
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = ownrows.Text(v)
		switch ownrows.Plain(v).(type) {
		case string, []byte:
			parts[i] = strconv.Quote(parts[i])
		}
	}
	return strings.Join(parts, "/")
}

// state is the SQLSTATE in an error of pgx, lib/pq or go-sql-driver/mysql, which has it in its text
// only: "Error 1062 (23000): …".
func state(err error) string {
	var with interface{ SQLState() string }
	if errors.As(err, &with) {
		return with.SQLState()
	}
	if _, after, ok := strings.Cut(err.Error(), "Error "); ok && len(after) >= 12 && after[5] == '(' &&
		after[11] == ')' {
		return after[6:11]
	}
	return ""
}

// isLost reports whether err leaves the outcome of a statement that commits by itself unknown.
func (t *Table[T]) isLost(err error) bool {
	begins := func(start string) bool { return strings.HasPrefix(err.Error(), start) }
	if slices.ContainsFunc(undone, begins) {
		return false
	}
	told := state(err)
	return sqlstore.Judge(t.d, err).Class == sqlstore.Unknown && (len(told) < 2 || !slices.Contains(refusals, told[:2]))
}

var (
	// undone is how errors begin after which nothing was done: those of database/sql itself, of pgx
	// about a parameter, of SQLite about a statement, as on a view, and of MySQL, which has no
	// SQLSTATE for a value or a view that does not fit.
	undone = []string{
		"sql: ", "failed to encode args", "SQL logic error", "Error 1265 (",
		"Error 1288 (", "Error 1366 (",
	}
	// refusals are the classes of SQLSTATE in which a server complains of values, of the statement
	// or the rights to it, or of what a trigger raised, and has undone it.
	refusals = []string{"21", "22", "23", "42", "44", "45", "55", "P0"}
)

// explain turns an error of a statement on the user's table into one of rowlock's. A constraint or
// a value out of range is the user's own: it damages no row of rowlock's, and is no conflict that
// passes by itself.
func (t *Table[T]) explain(verb string, err error) error {
	what := verb + " " + t.name
	if v := sqlstore.Judge(t.d, err); strings.HasPrefix(state(err), "23") ||
		errors.Is(v.As, lease.ErrCorrupt) || errors.Is(v.As, lease.ErrTokenExhausted) ||
		errors.Is(v.As, sqlstore.ErrRaised) {
		return fmt.Errorf("rowlock: %s: %w", what, err)
	}
	err = ownrows.Explain(t.d, what, err)
	if errors.Is(err, lease.ErrTable) {
		t.located.forget()
	}
	return err
}
