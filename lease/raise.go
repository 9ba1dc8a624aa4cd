package lease

import (
	"context"
	"fmt"
)

// Raiser is a Store that can give a held lease a larger token, so that several stores can grant one
// lease with one token: see package quorum.
type Raiser interface {
	// Raise gives each lease the token To, if the row still names the lease and it has not expired.
	// Owner, expiry and note stay. From then on the row names the lease with To alone, and the next
	// grant of the key is above To. A repeated request finds its own To and answers as the first.
	//
	// Gone says that nothing was changed, because the row names another lease, or because the lease
	// has expired.
	Raise(ctx context.Context, reqs []RaiseRequest) ([]Raised, error)
}

// RaiseRequest asks for a larger token of one lease.
type RaiseRequest struct {
	Lease
	// To is at least the token of the lease, and below [MaxToken].
	To int64
}

// Raised is the answer to one RaiseRequest.
type Raised struct {
	Gone bool
	// Err is set if this item alone failed.
	Err error
}

// Check returns an error for a request that every store refuses: a token that would fall or that no
// grant could follow.
func (r RaiseRequest) Check() error {
	if err := CheckStoredKey(r.Key); err != nil {
		return err
	}
	switch {
	case r.Owner.IsZero() || r.Token <= 0:
		return fmt.Errorf("%w: raise %q: owner %s with token %d names no lease",
			ErrConfig, r.Key, r.Owner, r.Token)
	case r.To < r.Token:
		return fmt.Errorf("%w: raise %q: the token %d would fall to %d; tokens only grow",
			ErrConfig, r.Key, r.Token, r.To)
	case r.To >= MaxToken:
		return fmt.Errorf("%w: raise %q to %d; the last token is %d",
			ErrTokenExhausted, r.Key, r.To, MaxToken-1)
	}
	return nil
}
