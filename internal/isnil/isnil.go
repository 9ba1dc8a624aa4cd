// Package isnil sees through interfaces that hold a nil pointer.
package isnil

import (
	"context"
	"fmt"
	"reflect"

	"github.com/rowlockdb/rowlock/lease"
)

// Value reports whether v is nil, or an interface that has a nil pointer in it, on which a method
// would panic. database/sql's types are pointers, and Go compares such an interface unequal to nil.
func Value(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// Context returns an error that wraps lease.ErrConfig if ctx, given to caller, is nil.
func Context(caller string, ctx context.Context) error {
	if ctx != nil {
		return nil
	}
	return fmt.Errorf("%w: %s: ctx is nil; pass context.Background() if nothing is to end the call",
		lease.ErrConfig, caller)
}

// Open returns an error that wraps lease.ErrConfig if the database or the dialect that caller was
// given is nil.
func Open(caller string, db, dialect any) error {
	if !Value(db) && !Value(dialect) {
		return nil
	}
	return fmt.Errorf("%w: %s needs a database and a dialect, and one of them is nil", lease.ErrConfig, caller)
}
