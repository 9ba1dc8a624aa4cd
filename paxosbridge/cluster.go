package paxosbridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// Table is what a bridge needs of the store that keys come from. rowlock.OpenTable returns one.
type Table interface {
	lease.Mover
	lease.Passer
	lease.Notifier
	lease.Interest
	lease.Fencer
	lease.TxReleaser
	lease.Sweeper
}

// Cluster is where hot keys go: a lease.Store that remembers by consensus. It keeps a record for each key that was ever opened there:
// an epoch, and whether that is open or sealed. A record's epoch only grows, a sealed epoch stays sealed, and records are never removed:
// by that alone a request that is late by a week is refused.
//
// A request that names an Epoch is granted only while the key's record is open in that very epoch; otherwise its item's error is a
// [*RecordError]. One that names none is for whoever uses the cluster as a store of its own, without a bridge: it goes by what the
// record says, and a key without a record counts as open, in epoch 0. The two kinds must not share a key.
//
// Tokens are epoch<<lease.EpochShift plus a counter that grows within the epoch, so that they grow for ever.
type Cluster interface {
	lease.Store
	// Passer spares waiters a round trip.
	lease.Passer
	// Notifier wakes the waiters of other processes.
	lease.Notifier

	// Open opens key in epoch, which is above 0, if its record is of an older epoch or there is none. Otherwise it changes nothing, and that is no error.
	// Anybody may do it who has confirmed in the database (lease.Mover.Confirm) that the key's home is this cluster in this epoch.
	Open(ctx context.Context, key string, epoch int64) error
	// Seal closes the epoch of a lease for good, if the key is held with this lease: who holds it gives it up by this. ok false says
	// that nothing was changed.
	Seal(ctx context.Context, l lease.Lease) (ok bool, err error)
	// Supersede seals key in epoch, held or not, if its record is of an older epoch or there is none: nothing older is ever granted or
	// opened again. It is for keys that were taken back by force.
	Supersede(ctx context.Context, key string, epoch int64) error
	// Records lists up to limit records with a key above after, in key order.
	Records(ctx context.Context, after string, limit int) ([]Record, error)
	// Probe writes something by consensus and reads it back: nil says that the cluster would have answered just now.
	Probe(ctx context.Context) error
}

// Record is what a cluster remembers of a key.
type Record struct {
	Key    string
	Epoch  int64
	Sealed bool
}

// ErrRecord is what a [*RecordError] is.
var ErrRecord = errors.New("paxosbridge: the cluster's record is of another epoch")

// RecordError is why a cluster does not grant a key in the epoch asked for. Nothing was changed.
type RecordError struct {
	Record // Epoch 0 and not Sealed: there is none
	// Asked is the epoch that the request named.
	Asked int64
}

// Error says what the record is.
func (e *RecordError) Error() string {
	state := "open"
	if e.Sealed {
		state = "sealed"
	}
	return fmt.Sprintf("%v: %q was asked for in epoch %d, and is %s in epoch %d", ErrRecord, e.Key, e.Asked, state, e.Epoch)
}

// Is makes errors.Is(err, ErrRecord) true.
func (e *RecordError) Is(target error) bool { return target == ErrRecord }
