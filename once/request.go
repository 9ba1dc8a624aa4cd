package once

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Request is what must be done once.
type Request struct {
	// Tenant separates the keys of one party from those of another: up to 255 bytes, or none.
	Tenant string
	// Key names the request: 1 to 255 bytes, compared exactly.
	Key string
	// Fingerprint tells a repeat from another request under the same key: the 32 bytes of
	// [Fingerprint], or none. It must be the same as the first time; none differs from any.
	Fingerprint []byte
	// Lock, unless it is nil, is fenced first in the transaction, a *rowlock.Lock or *rowlock.Locks:
	// nothing is done, and the error is lease.ErrFenced, if another owner has had its key since. It
	// is not released: Unlock it after Do, which has then committed. Of a request that was done
	// before the answer needs no lock, but the lock is fenced all the same, unless the call has waited
	// for the first in this process. On MySQL and MariaDB its mark stays until the Unlock: see
	// docs/protect.md.
	Lock Fencer
}

// Fencer is a lock that a transaction can check: *rowlock.Lock and *rowlock.Locks are.
type Fencer interface {
	Fence(ctx context.Context, tx lease.Tx) error
}

// fence checks the request's lock, before anything is read in tx.
func (r *Request) fence(ctx context.Context, tx lease.Tx) error {
	if r.Lock == nil {
		return nil
	}
	return r.Lock.Fence(ctx, tx)
}

// Result is the outcome of a request.
type Result struct {
	// Value is what the function returned; nil if that was empty.
	Value []byte
	// Replayed says that Value comes from a transaction that was committed before, and that the
	// function has not just returned it. It is also true if this very call had committed it and got
	// no answer, so do not base another effect on its being false.
	Replayed bool
}

// Func does the work, within tx: what it writes there is committed together with its result, or not
// at all. If the database ends the transaction because of another, Func runs again, so that it may
// run more than once; only one run is ever committed. It must return the errors of its statements,
// and neither commit nor roll back.
//
// On MySQL and MariaDB two mistakes are expensive. After a deadlock the transaction is gone. If a
// function goes on all the same, its later statements are committed one by one: Do notices and
// returns an error, too late to undo them. And CREATE TABLE, TRUNCATE and the like commit what was
// done so far, the key included.
type Func func(ctx context.Context, tx *sql.Tx) ([]byte, error)

// Fingerprint returns the SHA-256 of the parts and their lengths, so that "ab", "c" differs from
// "a", "bc".
func Fingerprint(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return h.Sum(nil)
}

func (r Request) check(f Func) error {
	switch {
	case f == nil:
		return fmt.Errorf("%w: once %q: the function is nil", lease.ErrConfig, r.Key)
	case r.Lock != nil && isnil.Value(r.Lock):
		return fmt.Errorf("%w: once %q: the Lock is a nil %T: lock before, or leave it out", lease.ErrConfig, r.Key, r.Lock)
	case len(r.Tenant) > lease.MaxKey:
		return fmt.Errorf("%w: the tenant %.24q… has %d bytes; at most %d are allowed: hash the long part",
			lease.ErrInvalidKey, r.Tenant, len(r.Tenant), lease.MaxKey)
	case len(r.Fingerprint) != 0 && len(r.Fingerprint) != sha256.Size:
		return fmt.Errorf("%w: once %q: the fingerprint has %d bytes; give it none, or the %d of once.Fingerprint",
			lease.ErrConfig, r.Key, len(r.Fingerprint), sha256.Size)
	}
	return lease.CheckKey(r.Key)
}

// row is what the request claims, to be kept for that long.
func (r Request) row(keep time.Duration) sqlstore.OnceClaim {
	return sqlstore.OnceClaim{
		Tenant: []byte(r.Tenant), Key: []byte(r.Key), Fingerprint: append([]byte{}, r.Fingerprint...), Keep: keep,
	}
}

// place is where a request is remembered in this process.
type place struct{ tenant, key string }

func (r Request) place() place { return place{r.Tenant, r.Key} }
