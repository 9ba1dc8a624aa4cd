package tokenfence

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// tries is how often Swap reads an object that changes between the read and the write.
const tries = 10

// Swap writes an object under token, in a store that writes on a condition but has no transactions:
// If-Match in S3 and Azure, a generation in Google Cloud Storage, a revision in a key-value store.
// It returns lease.ErrFenced if the object has a higher token.
//
// look returns the token that is kept with the object and the object's version, or the token 0 and
// the version that stands for a missing object. write stores the object together with token, on
// condition that it still has that version; it returns false if the store refused because it has
// not. Swap then looks again, up to 10 times, and returns lease.ErrBusy after that. An error of
// either function ends Swap and is returned as it is. After an error of write the object may have
// been written: calling Swap again is safe.
//
// The guarantee is that of the store: a write under a lower token is refused once a higher one is
// stored, if the store compares and writes in one step, if each write changes the version, and if
// every writer uses Swap. An ETag that is a hash of the content, as in S3, does not change with an
// object's metadata, so keep the token in the content there. A deleted object has forgotten its
// token: write an empty one instead. What a holder reads before its own write may change until
// then.
func Swap[V any](ctx context.Context, token lease.Token,
	look func(context.Context) (found lease.Token, version V, err error),
	write func(context.Context, V) (stored bool, err error),
) error {
	if look == nil || write == nil {
		return fmt.Errorf("%w: tokenfence.Swap needs a function that looks and one that writes",
			lease.ErrConfig)
	}
	if err := cmp.Or(isnil.Context("tokenfence.Swap", ctx), checkToken(token)); err != nil {
		return err
	}
	for range tries {
		if err := ctx.Err(); err != nil {
			return err
		}
		found, version, err := look(ctx)
		if err != nil {
			return err
		}
		if found > token {
			return fmt.Errorf("%w: the object was written under token %d, and this write has %d: the "+
				"lock has had another holder since", lease.ErrFenced, found, token)
		}
		if stored, err := write(ctx, version); err != nil || stored {
			return err
		}
	}
	return fmt.Errorf("%w: the object changed %d times between its read and its write; try again",
		lease.ErrBusy, tries)
}
