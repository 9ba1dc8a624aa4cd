package measure

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rowlockdb/rowlock"
)

const (
	mostClasses  = 100 // beyond them all are Other: a classifier that returns keys ruins no server
	longestClass = 128 // bytes

	// Other is the class of keys whose own class came after the first hundred, and of those at which
	// the classifier panicked.
	Other = "_other"
)

// Classes keeps what belongs to each class of keys, such as prepared attributes.
type Classes[T any] struct {
	of   func(key string) string
	make func(class string) T
	none T

	other func() T
	known sync.Map // of class to T
	mu    sync.Mutex
	count atomic.Int64
}

// NewClasses returns classes by the classifier of. If it is nil, or returns "", the key has no
// class, and what belongs to it is the result of makes("").
func NewClasses[T any](of func(key string) string, makes func(class string) T) *Classes[T] {
	return &Classes[T]{
		of: of, make: makes, none: makes(""),
		other: sync.OnceValue(func() T { return makes(Other) }),
	}
}

// Of returns what belongs to the class of a key.
func (c *Classes[T]) Of(key string) T {
	class := c.Name(key)
	if class == "" {
		return c.none
	}
	if known, ok := c.known.Load(class); ok {
		return known.(T)
	}
	return c.add(class)
}

// Name is the class of a key as the classifier says, cut to 128 bytes of UTF-8. It is Other if the
// classifier panics: on the goroutine that renews leases, its panic would end the process.
func (c *Classes[T]) Name(key string) (class string) {
	if c.of == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			class = Other
		}
	}()
	return short(strings.ToValidUTF8(c.of(key), "�"))
}

// short cuts text between two runes.
func short(text string) string {
	if len(text) <= longestClass {
		return text
	}
	return strings.ToValidUTF8(text[:longestClass], "")
}

func (c *Classes[T]) add(class string) T {
	if class == Other || c.count.Load() >= mostClasses {
		return c.other()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.known.Load(class); ok {
		return known.(T)
	}
	if c.count.Load() >= mostClasses {
		return c.other()
	}
	made := c.make(class)
	c.known.Store(class, made)
	c.count.Add(1)
	return made
}

// None is what belongs to a key without a class.
func (c *Classes[T]) None() T { return c.none }

// Causes are the values of the attribute Cause on Lost. A metric has all of them from the start,
// because an increase from nothing to 1 is none to Prometheus.
var Causes = []string{"lost", "max_hold", "idle"}

// CauseOf is one of Causes.
func CauseOf(err error) string {
	switch {
	case errors.Is(err, rowlock.ErrMaxHold):
		return "max_hold"
	case errors.Is(err, rowlock.ErrIdle):
		return "idle"
	default:
		return "lost"
	}
}
