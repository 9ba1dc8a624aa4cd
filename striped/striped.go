// Package striped spreads one hot resource over n locks, its stripes, so that n callers work at a
// time: a stock that is kept in segments, a counter in shards, the entries of a cache.
//
// The stripes of "stock/42" are the keys "stock/42/00", "stock/42/01" and so on, ordinary keys of a
// client: everything that package rowlock says of a lock holds for them, Fence included. Which
// stripe a caller takes depends on what it is about:
//
//   - An id that always belongs to the same stripe: lock the key that [Stripes.For] returns.
//   - Work for which any stripe will do, as taking an item from a segment of a stock:
//     [Stripes.Any].
//   - Work on the whole, as counting it: [Stripes.All].
//
// All processes must use the same number of stripes for a name. With another number an id belongs
// to another stripe, so that two processes would not exclude each other, and All locks another set.
// To change the number, stop the processes, or take another name.
package striped

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// Max is the largest number of stripes: as many keys as can be locked together.
const Max = 512

// Stripes are the stripes of one name. They are safe for concurrent use, and need no Close.
type Stripes struct {
	locks *rowlock.Client
	keys  []string
}

// New returns n stripes of name, whose locks are those of a client. It asks the database for
// nothing. Its error is rowlock.ErrConfig for a client that is nil or an n that is not 1 to Max,
// and rowlock.ErrInvalidKey for a name of which no keys can be made: with the 4 bytes of the
// longest number it may have 255.
func New(locks *rowlock.Client, name string, n int) (*Stripes, error) {
	switch {
	case locks == nil:
		return nil, fmt.Errorf("%w: striped.New of %q: the client is nil", rowlock.ErrConfig, name)
	case n < 1 || n > Max:
		return nil, fmt.Errorf("%w: striped.New of %q: %d stripes; 1 to %d are allowed",
			rowlock.ErrConfig, name, n, Max)
	case name == "":
		return nil, fmt.Errorf("%w: striped.New: the name is empty", rowlock.ErrInvalidKey)
	}
	s := &Stripes{locks: locks, keys: make([]string, n)}
	for i := range s.keys {
		s.keys[i] = fmt.Sprintf("%s/%02d", name, i)
	}
	if err := lease.CheckKey(s.keys[n-1]); err != nil {
		return nil, fmt.Errorf("striped.New of %.40q, whose longest key has %d bytes: %w",
			name, len(s.keys[n-1]), err)
	}
	return s, nil
}

// Len is the number of stripes.
func (s *Stripes) Len() int { return len(s.keys) }

// Number is the number of the stripe to which id belongs, from 0 on: the 64-bit FNV-1a hash of its
// bytes, modulo the number of stripes. It is the same in every process, on every machine and in
// every version of this package. Ids that an adversary chooses may all belong to one stripe.
func (s *Stripes) Number(id string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // never fails
	return int(h.Sum64() % uint64(len(s.keys)))
}

// For is the key of the stripe to which id belongs: see Number. Lock it with the client. Two ids
// may have one key, so that a caller of several ids must lock their keys together, with LockAll.
func (s *Stripes) For(id string) string { return s.keys[s.Number(id)] }

// Key is the key of stripe i. It panics unless i is 0 to Len less one.
func (s *Stripes) Key(i int) string { return s.keys[i] }

// Keys are the keys of all stripes, by number. The slice is the caller's.
func (s *Stripes) Keys() []string { return append([]string(nil), s.keys...) }

// Index is the number of the stripe of a key, as that of a lock from Any. ok is false for a key
// that is no stripe's of this name.
func (s *Stripes) Index(key string) (i int, ok bool) {
	i = slices.Index(s.keys, key)
	return max(i, 0), i >= 0
}

// Any locks a stripe that is free, or else the first that is released: see rowlock.Client.LockAny.
// Lock.Key says which, and Index its number.
func (s *Stripes) Any(ctx context.Context, opts ...rowlock.Option) (*rowlock.Lock, error) {
	return s.locks.LockAny(ctx, s.keys, opts...)
}

// TryAny locks a stripe that is free, and does not wait: see rowlock.Client.TryLockAny.
func (s *Stripes) TryAny(ctx context.Context, opts ...rowlock.Option) (*rowlock.Lock, error) {
	return s.locks.TryLockAny(ctx, s.keys, opts...)
}

// All locks all stripes together: see rowlock.Client.LockAll. While other callers keep the stripes
// busy it can wait for long, unless the client is Fair.
func (s *Stripes) All(ctx context.Context, opts ...rowlock.Option) (*rowlock.Locks, error) {
	return s.locks.LockAll(ctx, s.keys, opts...)
}
