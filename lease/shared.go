package lease

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Sharer is a Store whose keys can be held by several members at once. The members are a reader
// group: its row has the reader group as its owner, one token, and no end. Each
// member has a lease of its own, with Shared set, which Renew, Release, Fence and ReleaseTx take.
//
//   - While a reader group has a live member, no other owner holds the key. Acquire refuses it,
//     with a Holder that is Shared. A reader group without a live member is free: Acquire grants
//     its key.
//   - A member's Renew extends that member alone, and never revives it. A member's Release removes
//     it alone; the release of the last member ends the reader group.
//   - Fences of two members pass side by side. While one is open the reader group does not end, so
//     that no other owner is granted the key. A fence passes while the row names the reader group,
//     even if its own member has expired: no other owner was in between.
//   - A reader group's token is that of the grant that it was made of. It orders its members
//     against all other owners, and not among each other.
//   - Inspect lists a reader group as one record that is Shared, with the note and the expiry of
//     the member that lives longest.
type Sharer interface {
	Store
	// Share makes each requester a member of the reader group that holds its key. It neither waits nor
	// makes a reader group: a key without one is answered Possible if Acquire may grant it.
	//
	// While an intent for the key lives, no new member is let in, but for [IntentAdmits] after each
	// [IntentRefuses]: at the same time for all keys. A repeated request of a member that lives is
	// answered as the first, whatever is intended, and extends the member's lease.
	Share(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
	// Downgrade makes each lease that is held and not Shared a reader group with one member: the same
	// key, owner, token and note, and the TTL of the request. Lost: there is no such lease any more. A
	// repeated request is answered as the first. An error that is [ErrBusy] may be the holder's own
	// fence, and then nothing was changed.
	Downgrade(ctx context.Context, reqs []RenewRequest) ([]Renewed, error)
	// Intend notes for d that a caller, named by an owner of its own, waits for keys exclusively. A
	// repeated Intend extends it, and keeps its age. A d of 0 removes it.
	Intend(ctx context.Context, waiter Owner, keys []string, d time.Duration) error
}

// Intents refuse new members for IntentRefuses, let them in for IntentAdmits, and so on, so that
// callers that wait for a key exclusively keep no others from sharing it for ever. Their age counts
// from the nearest multiple of the sum on the store's clock, because a caller that shares several
// keys needs all intents to let it in at once. So an intent first refuses for 4 to 16 s.
const (
	IntentRefuses = 10 * time.Second
	IntentAdmits  = time.Second
)

// Refuses reports whether an intent of this age, which may be negative, refuses new members.
func Refuses(age time.Duration) bool { return age%(IntentRefuses+IntentAdmits) < IntentRefuses }

// groupMark begins the owner of each row that a reader group holds.
const groupMark = "rowlockT"

// ReaderGroup is the owner of a row that a reader group with this token holds. A key has each token
// once, so that key and token name the reader group.
func ReaderGroup(token Token) (group Owner) {
	copy(group[:], groupMark)
	binary.BigEndian.PutUint64(group[len(groupMark):], uint64(token))
	return group
}

// ReaderGroupToken returns the token of a reader group.
func ReaderGroupToken(group Owner) (token Token, ok bool) {
	if string(group[:len(groupMark)]) != groupMark {
		return 0, false
	}
	return Token(binary.BigEndian.Uint64(group[len(groupMark):])), true
}

// CheckDowngrade returns an error for a downgrade that every store refuses.
func (r RenewRequest) CheckDowngrade() error {
	switch err := CheckStoredKey(r.Key); {
	case err != nil:
		return err
	case r.Owner.IsZero() || r.Shared || r.Token <= 0:
		return fmt.Errorf("%w: downgrade %q: it takes an exclusive lease with owner and token",
			ErrConfig, r.Key)
	}
	return nil
}
