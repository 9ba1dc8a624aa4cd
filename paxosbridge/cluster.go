package paxosbridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Table is what movers and holders need of the store that keys come from. Its waiters need a
// lease.Notifier and a lease.Registry too. rowlock.OpenTable returns one.
type Table interface {
	lease.Mover
	lease.Passer
	lease.Fencer
	lease.TxReleaser
}

// ability returns what a table may be able to do besides.
func ability[T any](table Table, what string) (T, error) {
	a, ok := adapter.As[T](table)
	if !ok {
		return a, fmt.Errorf("%w: bridge: the table cannot %s", lease.ErrUnsupported, what)
	}
	return a, nil
}

// Cluster is a lease.Store for hot keys that remembers by consensus. It keeps a record of each key
// that was ever opened there: an epoch, open or sealed. A record's epoch only grows, a sealed epoch
// stays sealed, and records are never removed. That alone refuses a request that is a week late.
//
// A request that names an Epoch is granted only while the key's record is open in that epoch.
// Otherwise its item's error is a [*RecordError]. A request that names none is for clients that use
// the cluster as a store without a bridge: the record's epoch decides, and a key without a record
// counts as open in epoch 0. The two kinds must not share a key.
//
// Tokens are epoch<<lease.EpochShift plus a counter that grows within the epoch, so that they
// always grow.
type Cluster interface {
	lease.Store
	// Passer spares waiters a round trip.
	lease.Passer
	// Notifier wakes the waiters of other processes.
	lease.Notifier

	// Open opens key in epoch, which is above 0, if the key has no record or one of an older epoch.
	// Otherwise it changes nothing and returns nil. The caller has confirmed in the database
	// (lease.Mover.Confirm) that the key's placement is this cluster in this epoch.
	Open(ctx context.Context, key string, epoch int64) error
	// Seal closes the epoch of a lease for good and releases the lease, if that holds the key. ok
	// false says that it changed nothing.
	Seal(ctx context.Context, l lease.Lease) (ok bool, err error)
	// Supersede seals key in epoch, held or not, if the key has no record or one of an older epoch.
	// From then on nothing older is granted or opened. It is for keys that were taken back by force.
	Supersede(ctx context.Context, key string, epoch int64) error
	// Records lists up to limit records with a key above after, in key order.
	Records(ctx context.Context, after string, limit int) ([]Record, error)
	// Probe writes by consensus and reads the write back. nil says that the cluster answers.
	Probe(ctx context.Context) error
}

// Claimer is a Cluster that remembers which application it belongs to, if it can. [New] claims it
// before it reads or writes a record: the records of another application would be taken for moves
// that the database has forgotten.
type Claimer interface {
	// ClaimFor remembers owner, unless there is an owner already, and returns the first one. owner
	// is one line of text.
	ClaimFor(ctx context.Context, owner string) (first string, err error)
}

// claim refuses a cluster, or a prefix in it, that belongs to other tables or to another placement
// of these. A table that does not know its instance, as one in memory, claims nothing.
func claim(ctx context.Context, table Table, cluster Cluster, placement int) error {
	c, can := adapter.As[Claimer](cluster)
	owner := adapter.Claim(table, placement)
	if !can || owner == "" {
		return nil
	}
	first, err := c.ClaimFor(ctx, owner)
	if err != nil {
		return fmt.Errorf("rowlock: bridge: claim the cluster: %w", err)
	}
	return adapter.CheckClaim(first, owner)
}

// Record is what a cluster remembers of a key.
type Record struct {
	Key    string
	Epoch  int64
	Sealed bool
	// Err says that the record has values that no bridge has written: lease.ErrCorrupt. Epoch and
	// Sealed then say nothing. An audit repairs the other records, and fails with this error.
	Err error
}

// ErrRecord is the kind of every [*RecordError].
var ErrRecord = errors.New("rowlock: bridge: the cluster's record is of another epoch")

// RecordError is why a cluster does not grant a key in the epoch that a request names. The request
// changed nothing.
type RecordError struct {
	Record // the zero Epoch and not Sealed: there is none
	// Asked is the epoch that the request names.
	Asked int64
}

// Error names the record's epoch and state.
func (e *RecordError) Error() string {
	state := "open"
	if e.Sealed {
		state = "sealed"
	}
	return fmt.Sprintf("%v: the request for %q names epoch %d; the record is %s in epoch %d",
		ErrRecord, e.Key, e.Asked, state, e.Epoch)
}

// Is makes errors.Is(err, ErrRecord) true.
func (e *RecordError) Is(target error) bool { return target == ErrRecord }
