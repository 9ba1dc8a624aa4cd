package lease

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Sharer is a Store whose keys can be held by several members at once. The members are a reader
// group, a team in identifiers: its row has the team as its owner, one token, and no end. Each
// member has a lease of its own, with Shared set, which Renew, Release, Fence and ReleaseTx take.
//
//   - While a team has a live member, no other owner holds the key. Acquire refuses it, with a
//     Holder that is Shared. A team without a live member is free: Acquire grants its key.
//   - A member's Renew extends that member alone, and never revives it. A member's Release removes
//     it alone; the release of the last member ends the team.
//   - Fences of two members pass side by side. While one is open the team does not end, so that no
//     other owner is granted the key. A fence passes while the row names the team, even if its own
//     member has expired: no other owner was in between.
//   - A team's token is that of the grant that it was made of. It orders its members against all
//     other owners, and not among each other.
//   - Inspect lists a team as one record that is Shared, with the note and the expiry of the member
//     that lives longest.
type Sharer interface {
	Store
	// Share makes each requester a member of the team that holds its key. It neither waits nor
	// makes a team: a key without one is answered Possible if Acquire may grant it.
	//
	// While a wish for the key lives, no new member is let in, but for [WishOpens] after each
	// [WishRefuses] of the oldest wish. A repeated request of a member that lives is
	// answered as the first, whatever is wished, and extends the member's lease.
	Share(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
	// Downgrade makes each lease that is held and not Shared a team with one member: the same key,
	// owner, token and note, and the TTL of the request. Lost: there is no such lease any more. A
	// repeated request is answered as the first. An error that is [ErrBusy] may be the holder's own
	// fence, and then nothing was changed.
	Downgrade(ctx context.Context, reqs []RenewRequest) ([]Renewed, error)
	// Wish notes for d that a caller, named by an owner of its own, waits for keys exclusively. A
	// repeated Wish extends it, and keeps its age. A d of 0 removes it.
	Wish(ctx context.Context, waiter Owner, keys []string, d time.Duration) error
}

// A wish refuses new members for WishRefuses, lets them in for WishOpens, and so on, so that
// callers that wait for a key exclusively keep no others from sharing it for ever.
const (
	WishRefuses = 10 * time.Second
	WishOpens   = time.Second
)

// Refuses reports whether a wish of this age refuses new members.
func Refuses(age time.Duration) bool { return age%(WishRefuses+WishOpens) < WishRefuses }

// teamMark begins the owner of each row that a team holds.
const teamMark = "rowlockT"

// ReaderGroup is the owner of a row that a team with this token holds. A key has each token once,
// so that key and token name the team.
func ReaderGroup(token Token) (team Owner) {
	copy(team[:], teamMark)
	binary.BigEndian.PutUint64(team[len(teamMark):], uint64(token))
	return team
}

// ReaderGroupToken returns the token of a team.
func ReaderGroupToken(team Owner) (token Token, ok bool) {
	if string(team[:len(teamMark)]) != teamMark {
		return 0, false
	}
	return Token(binary.BigEndian.Uint64(team[len(teamMark):])), true
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
