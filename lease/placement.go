package lease

import "context"

// Mover is a Store whose keys can move to another placement, as to the cluster of a bridge, and
// back. The row decides: every other method refuses a key that is locked elsewhere with [ErrMoved],
// whatever the request and however old it is.
//
// Both moves begin a new epoch, so that no earlier grant and no earlier request is honored after
// them. Neither can be half done, and each may be repeated.
type Mover interface {
	Store
	// Depart moves the key of a held lease to placement, a positive number, and returns the epoch
	// that begins. From then on the key has no holder here and is not granted here. ok false says
	// that nothing was changed, because the row names another owner or token. A repeated call finds
	// that too; see Confirm. A table that begins eras by the clock returns [ErrBusy] if an epoch in
	// which the key may return is not over yet: move it later.
	Depart(ctx context.Context, l Lease, placement int) (epoch int64, ok bool, err error)
	// Return takes the key back from placement if it is there in this epoch. The key is then free,
	// in the next epoch. ok false says that nothing was changed, because the key is not there or is
	// in another epoch. The caller has made sure that the other placement grants no more in this
	// epoch.
	Return(ctx context.Context, key string, placement int, epoch int64) (ok bool, err error)
	// Recall puts the row of a key at placement (PlacementTable or another) in this epoch, free,
	// wherever the key was, if its row is in an older epoch. It is for a database that has
	// forgotten a move, as one that failed over to a lagging replica has.
	//
	// If there is no row Recall makes one, but away from here only if the epoch is above all that
	// was swept. ok false without a row says that it is not, and that the next token granted here
	// will be above the epoch.
	Recall(ctx context.Context, key string, placement int, epoch int64) (ok bool, err error)
	// Confirm reports whether the key is at placement in this epoch, after an acknowledged commit
	// that writes to its row. A move that was only read may not be durable, because a commit that
	// waits for a replica can be visible. So confirm each move once before the other placement is
	// opened. An error leaves it open whether the move will last.
	Confirm(ctx context.Context, key string, placement int, epoch int64) (ok bool, err error)
	// FenceAt is Fence for a lease that placement has granted. The row must be at placement in the
	// token's epoch, and no larger token may have been fenced with. FenceAt writes the token into
	// the row in tx, so that no smaller one passes after tx. It locks the row for tx alone: two
	// transactions of one holder take turns.
	FenceAt(ctx context.Context, tx Runner, placement int, l Lease) error
}

// Roamer is a Store that grants keys whose row names another placement.
type Roamer interface {
	// Reaches reports whether keys of this placement, a cluster's, can be locked through this store.
	Reaches(placement int) bool
}

// Epoch is the epoch of a token.
func Epoch(token Token) int64 { return int64(token) >> EpochShift }

// EpochStart returns the token at which an epoch begins. Tokens granted in the epoch are larger.
func EpochStart(epoch int64) Token { return Token(epoch) << EpochShift }
