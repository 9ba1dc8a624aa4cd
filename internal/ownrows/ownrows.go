// Package ownrows is for statements on the user's own tables: what their errors mean, and what their
// values are called.
package ownrows

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Explain turns an error of a statement on the user's own tables, in the user's own transaction,
// into one of ours; what says which statement.
func Explain(d sqlstore.Classifier, what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("rowlock: %s: the transaction is over, committed or rolled back: %w",
			what, err)
	}
	v := sqlstore.Judge(d, err)
	switch {
	case errors.Is(v.As, lease.ErrNoSchema), errors.Is(v.As, lease.ErrSchemaVersion):
		return fmt.Errorf("%w: %s: %w", lease.ErrTable, what, err)
	// A constraint of the user's own is no corrupt row of ours.
	case errors.Is(v.As, lease.ErrReadOnly), errors.Is(v.As, lease.ErrPrivilege):
		return fmt.Errorf("%w: %s: %w", v.As, what, err)
	case v.Class == sqlstore.Conflict:
		return fmt.Errorf("%w: %s: %w (roll back and try again)", lease.ErrBusy, what, err)
	}
	return fmt.Errorf("rowlock: %s: %w", what, err)
}

// Plain returns a value of the user's own as a driver sees it: what a pointer points to, and what a
// driver.Valuer returns.
func Plain(v any) any {
	if converted, err := driver.DefaultParameterConverter.ConvertValue(v); err == nil {
		return converted
	}
	return v
}

// Text returns a value of the user's own as text that can be compared with what a driver
// returns for it.
func Text(v any) string {
	v = Plain(v)
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}
