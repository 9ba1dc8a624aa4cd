package once

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Request is what is to be done once.
type Request struct {
	// Tenant keeps the keys of one party from those of another: up to 255 bytes, or none.
	Tenant string
	// Key names the request: 1 to 255 bytes, compared exactly.
	Key string
	// Fingerprint tells a repeat from another request under the same key: the 32 bytes of [Fingerprint], or none. It must be the
	// same as the first time: none is another than any.
	Fingerprint []byte
}

// Result is what a request came to.
type Result struct {
	// Value is what the function returned; nil if that was empty.
	Value []byte
	// Replayed says that Value was kept from a transaction that was committed before, and was not returned by the function just now.
	// It is also true where this very call had committed it and not heard so: do not hang another effect on its being false.
	Replayed bool
}

// Func does it, within tx: what it writes there is committed together with its result, or not at all. Where the database ends the
// transaction because of another it is run again, so that it may run more than once; only one run is ever committed. It must
// return the errors of its statements, and neither commit nor roll back.
//
// MySQL and MariaDB make two mistakes here dear. After a deadlock the transaction is gone, and a function that goes on all the same has
// what follows committed statement by statement: if it returns a result that is noticed, and an error, though too late to undo it; if
// it returns none it is not noticed at all. And CREATE TABLE, TRUNCATE and their like commit what was done so far, the key included.
type Func func(ctx context.Context, tx *sql.Tx) ([]byte, error)

// Fingerprint returns the SHA-256 of the parts and their lengths: "ab", "c" is another request than "a", "bc".
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
	case len(r.Tenant) > lease.MaxKey:
		return fmt.Errorf("%w: the tenant %.24q… has %d bytes; at most %d are allowed: hash the long part", lease.ErrInvalidKey, r.Tenant, len(r.Tenant), lease.MaxKey)
	case len(r.Fingerprint) != 0 && len(r.Fingerprint) != sha256.Size:
		return fmt.Errorf("%w: once %q: the fingerprint has %d bytes; give it none, or the %d of once.Fingerprint", lease.ErrConfig, r.Key, len(r.Fingerprint), sha256.Size)
	}
	return lease.CheckKey(r.Key)
}

func (o *Once) row(r Request) sqlstore.OnceClaim {
	return sqlstore.OnceClaim{
		Tenant: []byte(r.Tenant), Key: []byte(r.Key), Fingerprint: append([]byte{}, r.Fingerprint...), Keep: o.cfg.Keep,
	}
}
