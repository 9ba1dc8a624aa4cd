package rowlock

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// A lock lives as follows. Each arrow is one step under the mutex of its state. Behind a colon
// stands where the lease goes.
//
//	            Downgrade                 shared, or as before
//	    live ─────────────► downgrading ─────────────────────► live
//	     │                    │     │
//	     │ end                │ end │ outcome unknown, which is an end
//	     │                    ▼     ▼
//	     │                 ending ──────────────► unclear
//	     │  shared, or        │  outcome unknown     │
//	     ▼  as before         │                      │
//	   ended ◄────────────────┤                      │
//	     │                    │ claim:               │ claim:
//	     │ claim:             │ the cleaner          │ the cleaner
//	     │ a release          ▼                      │
//	     │               releasedEarly               │
//	     │                    │ the answer comes:    │
//	     ▼                    ▼ the cleaner again    ▼
//	 released ◄───────────────┴──────────────────────┘
//	   │    ▲
//	   │    │ UnlockNow: a release
//	   ▼    │
//	lingering: MinHold has the lease run out by itself
//
// Two arrows more lead from live to released: the holder's own transaction has released the lease
// (UnlockTx), or the grant is not kept and the cleaner's.
//
// An end is the last handle's Unlock, Close, the finalizer, a loss, a forced release, MaxHold or
// MaxIdle. It ends the contexts of all handles and the renewals in the same step. What a call of
// Unlock, of Close or of the finalizer finds over it claims; the first has the lease, after a loss
// too, because the store may have it although the client cannot prove it. A Downgrade of unknown
// outcome claims it by itself, unless another call is about to. The orphan cleaner gets both forms
// of the lease, alone and shared, because it is not known which one the store has.
type phase uint8

const (
	live          phase = iota
	downgrading         // live, with a Downgrade at the store
	ended               // the lease is in the store still, for the first that claims it
	ending              // ended, with a Downgrade at the store: the form of the lease is not known yet
	unclear             // ended, and the form stays unknown
	released            // the lease was given away
	releasedEarly       // released, with a Downgrade at the store
	lingering           // the lease runs out by itself
	phases
)

// event is what moves a lock to another phase.
type event uint8

const (
	onDowngrade event = iota // one is about to be sent
	onShared                 // it is answered: the lease is shared
	onAsBefore               // it is answered: the lease is what it was
	onUnknown                // its outcome stays unknown
	onEnd                    // the lock is over, whatever the cause
	onTxRelease              // the holder's own transaction has released the lease
	onRefusal                // the grant is not kept
	onClaim                  // a call gives the lease away
	onMinHold                // MinHold has kept the lease that was claimed
	onTakeBack               // UnlockNow releases what MinHold has kept
	events
)

// place is where a step leaves the lease, exactly one.
type place uint8

const (
	nowhere    place = iota // no such step: the lock stays as it is
	withHolder              // the watchdog has it
	inStore                 // until it is claimed
	toRelease               // the caller releases it or hands it over
	toCleaner               // the caller gives it to the orphan cleaner
	gone                    // from the store, or to the cleaner before
	toExpiry
)

// steps are all steps that there are.
var steps = [phases][events]struct {
	to    phase
	lease place
}{
	live: {
		onDowngrade: {downgrading, withHolder}, onEnd: {ended, inStore},
		onTxRelease: {released, gone}, onRefusal: {released, toCleaner},
	},
	downgrading: {
		onShared: {live, withHolder}, onAsBefore: {live, withHolder}, onUnknown: {unclear, inStore},
		onEnd: {ending, inStore}, onTxRelease: {releasedEarly, gone}, // of an UnlockTx before it
	},
	ended: {onClaim: {released, toRelease}},
	ending: {
		onShared: {ended, inStore}, onAsBefore: {ended, inStore}, onUnknown: {unclear, inStore},
		onClaim: {releasedEarly, toCleaner},
	},
	unclear:  {onClaim: {released, toCleaner}},
	released: {onMinHold: {lingering, toExpiry}},
	releasedEarly: { // the Downgrade may have been carried out after the cleaner has looked
		onShared: {released, toCleaner}, onAsBefore: {released, gone}, onUnknown: {released, toCleaner},
	},
	lingering: {onTakeBack: {released, toRelease}},
}

// state is what may change of a lock, under one mutex.
type state struct {
	mu       sync.Mutex
	handles  int32 // that were not unlocked; the lock ends with the last
	phase    phase
	freed    bool                 // by a transaction that was committed
	passed   bool                 // and that has handed the lease to the next caller
	demanded bool                 // by the others of a cycle that a call above this hold has ended
	cause    error                // of its end; nil before
	answered chan struct{}        // closed when the Downgrade at the store is; nil without one
	nested   map[*nested]struct{} // of the handles but the first
	tx       lease.Tx             // that last fenced the lock, if any
	endHook  *func()              // the hook of an end before Hooks.Acquired has returned; else nil
}

// step makes the step of e, if there is one. The caller has the mutex.
func (s *state) step(e event) place {
	next := &steps[s.phase][e]
	if next.lease != nowhere {
		s.phase = next.to
	}
	return next.lease
}

// why is the cause of the lock's end, or nil.
func (s *state) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// nested is what a Reentrant call's handle has of its own.
type nested struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	key    string // as the call has named it
}
