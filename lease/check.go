package lease

import (
	"fmt"
	"reflect"
	"strings"
)

// isNil reports whether v is nil, or an interface with a nil pointer in it, on which a method would panic.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// CheckStoredKey is [CheckKey] for stores: the keys that rowlock keeps for itself pass, because who asks a store is rowlock.
func CheckStoredKey(key string) error {
	if strings.HasPrefix(key, Reserved) && len(key) <= MaxKey {
		return nil
	}
	return CheckKey(key)
}

// Check returns an error for a request that every store refuses, before it has done anything: what cannot be told from a free row, or
// not be found again.
func (r AcquireRequest) Check() error {
	if err := CheckStoredKey(r.Key); err != nil {
		return err
	}
	if r.Owner.IsZero() {
		return fmt.Errorf("%w: acquire %q: the zero owner is nobody; use lease.NewOwner", ErrConfig, r.Key)
	}
	return nil
}

// Check returns an error for a hand-over that every store refuses.
func (h HandOver) Check() error {
	if err := h.To.Check(); err != nil {
		return err
	}
	if h.To.Key != h.From.Key {
		return fmt.Errorf("%w: hand over %q: to the owner of another key, %q", ErrConfig, h.From.Key, h.To.Key)
	}
	return nil
}
