package lease

import "context"

// Mover is a Store whose keys can be given to another home, as the cluster of a bridge is, and taken back. The row decides: what is not
// at home here is refused with [ErrMoved] by every other method, whoever asks and however old the request is.
//
// Both steps begin a new epoch, so that nothing that was granted before, and no request that was sent before, is honoured after. None
// of them can be half done, and each may be repeated.
type Mover interface {
	Store
	// Depart gives the key of a lease that is held to home, a positive number. From then on nobody holds the key here and nobody is
	// granted it. It returns the epoch that begins. ok false says that nothing was changed: the row names another owner or token.
	// A repeated call finds that, too; see Confirm.
	Depart(ctx context.Context, l Lease, home int) (epoch int64, ok bool, err error)
	// Return takes the key back from home if it is there in this epoch. It is then free, in the next epoch. ok false says that nothing
	// was changed: the key is not there, or in another epoch. The caller has made sure that the other home grants no more in this epoch.
	Return(ctx context.Context, key string, home int, epoch int64) (ok bool, err error)
	// Recall puts the row of a key at home, HomeTable or another, in this epoch if it is in an older one, wherever it was, with nobody
	// holding it. It creates the row if there is none, but away from here only if the epoch is above all that was swept: ok false and no row
	// say that it is not, and that what this home grants next will be above the epoch. It is for a database that has forgotten a move, as one does that has failed
	// over to a replica that lagged.
	Recall(ctx context.Context, key string, home int, epoch int64) (ok bool, err error)
	// Confirm reports whether the key is at home in this epoch, after a commit that writes to its row was acknowledged. A move that
	// was only read may not be durable: a commit that waits for a replica can be visible. So confirm it, once for each move, before
	// the other home is opened. An error leaves it open whether the move will last.
	Confirm(ctx context.Context, key string, home int, epoch int64) (ok bool, err error)
	// FenceAt is Fence for a lease that home has granted. The row must be at home in the token's epoch, and no higher token may have
	// been fenced with; this one is written into it in tx, so that after tx no lower one passes. It locks the row for tx alone: two
	// transactions of one holder take turns.
	FenceAt(ctx context.Context, tx Runner, home int, l Lease) error
}

// Roamer is a Store that grants keys whose row says that their home is elsewhere.
type Roamer interface {
	// Reaches reports whether keys of this home can be locked through this store. HomeTable and HomeTransaction are asked for nobody.
	Reaches(home int) bool
}

// Epoch is the epoch of a token.
func Epoch(token int64) int64 { return token >> EpochShift }

// EpochStart returns the token that epoch begins at; what is granted in it is more.
func EpochStart(epoch int64) int64 { return epoch << EpochShift }
