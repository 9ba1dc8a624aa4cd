package lease

import (
	"fmt"
	"reflect"
	"strings"
)

// isNil reports whether v is nil, or an interface that has a nil pointer, on which a method would
// panic.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// CheckStoredKey is [CheckKey] for stores. The keys that rowlock keeps for itself pass, because
// rowlock itself asks a store for them.
func CheckStoredKey(key string) error {
	if strings.HasPrefix(key, Reserved) && len(key) <= MaxKey {
		return nil
	}
	return CheckKey(key)
}

// Check returns an error for a request that every store refuses before it has done anything: a key
// that no later request could name, an owner that would look like a free row, or a note that is
// longer than the column.
func (r AcquireRequest) Check() error {
	if err := CheckStoredKey(r.Key); err != nil {
		return err
	}
	switch {
	case r.Owner.IsZero():
		return fmt.Errorf("%w: acquire %q: the zero owner names no attempt; use lease.NewOwner",
			ErrConfig, r.Key)
	case len(r.Note) > MaxStoredNote:
		return fmt.Errorf("%w: acquire %q: a note of %d bytes; a store keeps %d: cut it, as "+
			"lease.StoredNote does", ErrConfig, r.Key, len(r.Note), MaxStoredNote)
	}
	return nil
}

// Check returns an error for a hand-over that every store refuses.
func (h HandOver) Check() error {
	if err := h.To.Check(); err != nil {
		return err
	}
	if h.To.Key != h.From.Key {
		return fmt.Errorf("%w: hand over %q: the next owner asks for another key, %q",
			ErrConfig, h.From.Key, h.To.Key)
	}
	return nil
}
