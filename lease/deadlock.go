package lease

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// DeadlockError says which lock a call would wait for although that lock waits for the call.
// errors.Is(err, ErrDeadlock) holds.
type DeadlockError struct {
	// Key is what the call waits for, and Token that of the lock that is held.
	Key   string
	Token Token
	// Where is the call stack that took it, one call in a line, with rowlock.Config.Debug. It is
	// empty for a lock of another call chain.
	Where string
	// Cycle is empty if the call's own chain holds the key. Otherwise it says who waits for what,
	// this call first: each waits for a key that the next holds, and the last for one that this
	// call's chain holds. This call was chosen because it began to wait last. All others go on.
	Cycle []Link
}

// Link is one of those who wait for each other.
type Link struct {
	// Key is what it waits for. The next holds it with Token.
	Key   string
	Token Token
	// Identity is that of its client, as its row has it: any client may have written it.
	Identity string
	// Waited is for how long it has waited, by the store's clock.
	Waited time.Duration
}

// Error names the keys and the cure. It is one line: of Where it has the first call.
func (e *DeadlockError) Error() string {
	if len(e.Cycle) > 1 {
		return e.circle()
	}
	taken := ""
	if call, _, _ := strings.Cut(e.Where, "\n"); call != "" {
		taken = ", taken by " + call
	}
	return fmt.Sprintf("%s: this call's ctx holds %q already, with token %d%s: "+
		"pass rowlock.Reentrant() to share the lock, or unlock it first",
		ErrDeadlock, e.Key, e.Token, taken)
}

// circle says who waits for whom.
func (e *DeadlockError) circle() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: this call waits for %q", ErrDeadlock, e.Key)
	for i, l := range e.Cycle[1:] {
		fmt.Fprintf(&b, ", held with token %d by %q, which has waited %s for %q",
			e.Cycle[i].Token, l.Identity, l.Waited.Round(time.Millisecond), l.Key)
	}
	b.WriteString(", which this call's chain holds; it began to wait last: unlock what it holds and " +
		"try again, or lock the keys together with LockAll")
	return b.String()
}

// Is makes errors.Is(err, ErrDeadlock) true.
func (e *DeadlockError) Is(target error) bool { return target == ErrDeadlock }

// Suspicion is a wait that may never end, although no context says so. Nothing is done about it.
type Suspicion struct {
	// Waits says who waits for which key, the client that tells first. Each waits for a key that
	// the next holds, and the last for one that the first holds. A single one says that a client
	// waits for a key that it holds itself.
	Waits []Link
	// Taken are the call stacks that took this client's locks among them, with
	// rowlock.Config.Debug.
	Taken []string
	// Incomplete says that too many calls wait for each other to look at all of them. Waits is then
	// empty.
	Incomplete bool
}

// Caller is what waits for keys while it holds others: a call whose context carries locks, or all
// calls of a process taken together. All keys that it waits for must be released or expire before
// it releases what it holds.
type Caller struct {
	// ID names this wait and no other. It is an Owner of its own.
	ID Owner
	// Holds are the leases that the chain holds: their keys and tokens.
	Holds []Lease
	// Wants are the keys that it waits for.
	Wants []string
	// Shares are keys that it waits to share, beside others. While other readers share one, it does
	// not keep the chain waiting, and there is no edge.
	Shares []string
	// Waited is how long it has waited, and Each how long for some of these keys, if not for so long:
	// the calls of a process have not begun to wait together.
	Waited time.Duration
	Each   map[string]time.Duration
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
	Token Token
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
	// keeps its Since, and lives until then plus Waited plus life at most: a request that is
	// carried out late does not make it live longer than if it had been in time.
	Record(ctx context.Context, by Party, callers []Caller, life time.Duration) error
	// Erase removes the records.
	Erase(ctx context.Context, callers []Caller) error
	// Edges returns the edges that can be reached from these chains, limit at most. It writes
	// nothing. A record that has expired has no edge, and neither has a key whose row names another
	// token by now.
	Edges(ctx context.Context, by Party, from []Owner, limit int) ([]Edge, error)
}
