// Package isnil sees through interfaces that hold a nil pointer.
package isnil

import "reflect"

// Value reports whether v is nil, or an interface that has a nil pointer in it, on which a method
// would panic. database/sql's types are pointers, and Go compares such an interface unequal to nil.
func Value(v any) bool {
	value := reflect.ValueOf(v)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}
