package lease

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxReason is the longest reason of a [ForceRequest] in bytes.
const MaxReason = 1000

// ForceReleaser is a Store from which an operator can take a lease away. Every lease that was taken
// away has a record for as long as the table keeps it; rowlock removes none.
type ForceReleaser interface {
	// ForceRelease frees the key, raises its token and keeps the record, in one transaction. It ends
	// the lease that the row names, whether or not that lease has expired, because the fence of an
	// expired lease passes until another owner takes the key. It ends all members of a key that is
	// shared.
	//
	// A fenced transaction of the holder that is under way comes first: ForceRelease waits for it for
	// a few seconds, and then returns an error that wraps [ErrBusy]. Afterwards the holder's fence is
	// refused, and its next renewal finds the lease lost.
	//
	// The error wraps [ErrNotHeld] if the row names no lease, or another than the request does, and
	// [ErrMoved] for a key that is locked elsewhere. Then nothing has changed. A repetition with the
	// same ID answers as the first.
	ForceRelease(ctx context.Context, r ForceRequest) (Forced, error)

	// ForceReleases lists the records, latest first.
	ForceReleases(ctx context.Context, f ForcedFilter) ([]Forced, error)
}

// ForceRequest asks for the end of a lease that another client holds.
type ForceRequest struct {
	Key string
	// Token is of the lease to end, as the operator saw it. 0 ends whichever lease the row names.
	Token Token
	// By names the operator: 1 to [MaxIdentity] bytes of UTF-8.
	By string
	// Reason is 1 to [MaxReason] bytes of UTF-8.
	Reason string
	// ID names the request; see [NewOwner].
	ID Owner
	// Evict ends the session whose transaction has the row locked, if it is of the same database
	// user: what that transaction has done is rolled back.
	Evict bool
}

// Forced is the record of a lease that was taken away.
type Forced struct {
	ForceRequest
	// Lease is what the row named. Its owner is a reader group if the key was shared; see [Team].
	Lease Lease
	// Note is as in [Record]: the identity of the client that held the key, a tab and its note.
	Note string
	// Raised is the token that the key had afterwards. The next grant is above it.
	Raised Token
	// At is when, by the store's clock.
	At time.Time
	// Session is the user that the database knows the operator's session as, beside By, which anyone
	// can claim. It is empty where a database has no users.
	Session string
}

// ForcedFilter selects records.
type ForcedFilter struct {
	// Prefix is of the keys. Key is one key; empty means all that have the prefix.
	Prefix, Key string
	// Before leaves out records from that time on. The zero time leaves out none.
	Before time.Time
	// Last is the last record of the page before, of which At, Raised and ID count: the page begins
	// with the one that precedes it, whatever Before is. A store's clock may give several one time.
	Last Forced
	// Limit is the largest number of records; 0 means 1,000.
	Limit int
}

// Check returns an error that wraps [ErrConfig] or [ErrInvalidKey] for a request that every store
// refuses.
func (r *ForceRequest) Check() error {
	if err := CheckStoredKey(r.Key); err != nil {
		return err
	}
	switch {
	case r.Token < 0 || r.Token > MaxToken:
		return fmt.Errorf("%w: force release of %q: no lease has token %d", ErrConfig, r.Key, r.Token)
	case r.ID.IsZero():
		return fmt.Errorf("%w: force release of %q: the request has no ID; use NewOwner", ErrConfig, r.Key)
	}
	if err := checkText("operator", r.Key, r.By, MaxIdentity); err != nil {
		return err
	}
	return checkText("reason", r.Key, r.Reason, MaxReason)
}

func checkText(what, key, text string, most int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("%w: force release of %q without %s: say it, because the record keeps it",
			ErrConfig, key, what)
	case len(text) > most:
		return fmt.Errorf("%w: force release of %q: the %s has %d bytes; at most %d are kept",
			ErrConfig, key, what, len(text), most)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%w: force release of %q: the %s %.40q is not UTF-8 without zero bytes",
			ErrConfig, key, what, text)
	}
	return nil
}

// Evictor is a Store that can end the database session that keeps an expired key from being taken.
// Such a session belongs, for example, to a client that vanished inside a transaction that fences:
// the server may hear nothing of it for hours.
type Evictor interface {
	// Evict finds the sessions whose transactions have the row of an expired key locked. It ends
	// those of the same database user whose transactions are at least that old. That is safe,
	// because their transactions had not committed and are rolled back.
	//
	// It returns the sessions it has ended, and those of other users, which it leaves alone: all of
	// them, and ends none, if least is negative. None and no error say that no session was in the way.
	// [ErrPrivilege]: this user may not see or end sessions; [ErrUnsupported]: the store cannot.
	Evict(ctx context.Context, key string, least time.Duration) ([]Evicted, error)
}

// Evicted is a session that had the row of an expired key locked.
type Evicted struct {
	// Session is the server's id of the session, and User the database user that it belongs to.
	Session int64
	User    string
	// From is the client's address as the server sees it, if it shows one, and Age at least how long
	// its transaction has been open: below 0 if this user may not see it.
	From string
	Age  time.Duration
	// Ended is false for a session that goes on.
	Ended bool
	// Prepared is the statement that ends a prepared transaction, which no session has: Session is
	// 0 then. Its application may have to commit it instead.
	Prepared string
}

// String says which session it is, and since when.
func (e Evicted) String() string {
	if e.Prepared != "" {
		return "a prepared transaction, which no session has: commit it, or end it with: " + e.Prepared
	}
	who := fmt.Sprintf("session %d of the user %q", e.Session, e.User)
	if e.Age < 0 {
		return who
	}
	return fmt.Sprintf("%s (client %s, transaction %v old)", who, cmp.Or(e.From, "local"), e.Age.Round(time.Second/10))
}
