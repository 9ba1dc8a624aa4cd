package lease

import (
	"context"
	"time"
)

// Chain is what waits for keys while it holds others: a call whose context carries locks, or all
// calls of a process taken together. All keys that it waits for must be released or expire before
// it releases what it holds.
type Chain struct {
	// ID names this wait and no other. It is an Owner of its own.
	ID Owner
	// Holds are the leases that the chain holds: their keys and tokens.
	Holds []Lease
	// Wants are the keys that it waits for.
	Wants []string
	// Shares are keys that it waits to share, beside others. While other readers share one, it does
	// not keep the chain waiting, and there is no edge.
	Shares []string
	// Waited is how long it has waited.
	Waited time.Duration
}

// Party says whose chains are recorded.
type Party struct {
	// Identity is shown to the other chains of a cycle.
	Identity string
	// Process says that a chain stands for all calls of a process: one of them holds the one key,
	// and one, perhaps another, waits for the other. Such chains are compared only with their like.
	Process bool
}

// Edge says that one chain waits for a key that another holds: both have said so, and at the moment
// of the reading the key's row had the token of the holder's record and had not expired. It had
// that token when the wait was last recorded, too: one that has waited may have had the key since,
// and have released it.
type Edge struct {
	From, To Owner
	// Key is held by To with Token.
	Key   string
	Token int64
	// Identity is that of From.
	Identity string
	// Since is when From began to wait and Until when its record expires, by the store's clock,
	// each as a duration since an epoch of the store's choice. Waited is how long From has waited.
	Since, Until, Waited time.Duration
}

// Graph is a Store that records which chains wait for which keys, so that each can find the cycle
// that it is part of. Nothing here is needed for safety.
type Graph interface {
	// Record notes what the chains hold and wait for, for life unless repeated. A repeated record
	// keeps its Since, and lives until then plus Waited plus life at most: a request that is carried
	// out late does not make it live longer than if it had been in time.
	Record(ctx context.Context, by Party, chains []Chain, life time.Duration) error
	// Erase removes the records.
	Erase(ctx context.Context, chains []Chain) error
	// Edges returns the edges that can be reached from these chains, limit at most. It writes
	// nothing. A record that has expired has no edge, and neither has a key whose row names another
	// token by now.
	Edges(ctx context.Context, by Party, from []Owner, limit int) ([]Edge, error)
}
