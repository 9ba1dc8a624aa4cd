package lease

import (
	"fmt"
	"strings"
	"time"
)

// DeadlockError says which lock a call would wait for although that lock waits for the call.
// errors.Is(err, ErrDeadlock) holds.
type DeadlockError struct {
	// Key is what the call waits for, and Token that of the lock that is held.
	Key   string
	Token int64
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
	Token int64
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
