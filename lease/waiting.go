package lease

import (
	"context"
	"fmt"
	"time"
)

// The abilities of a [Store] below serve waiters. None is needed to wait: a client that polls with
// Inspect always makes progress. They make waiting sooner, cheaper or fair. A client looks for each
// once, by type assertion.

// HandOver passes a held lease to its next owner.
type HandOver struct {
	From Lease
	// To is for the same key. Its TTL counts from the hand-over.
	To AcquireRequest
}

// Passer is a Store that can hand a lease over in one change of its row, instead of a release and
// an acquire.
type Passer interface {
	// HandOver grants each To if the row still names From, expired or not. Granted false says that it
	// does not, or that the key's tokens have run out: nothing was changed, and Holder is empty. A
	// repeated request returns the lease as it is. An item's error that is [ErrMoved] says that From
	// was released and To was granted nothing, because the key is about to move elsewhere.
	HandOver(ctx context.Context, items []HandOver) ([]Acquired, error)
}

// Notifier is a Store that can tell the waiters of other processes that a key is free, sooner than
// a poll finds out. Polling guarantees progress; notifications only reduce latency. One may be
// lost, late, repeated or wrong, so that no caller may rely on it.
type Notifier interface {
	// Listen calls heard with each key that another process announces. It calls heard with "" if
	// any key may be free: whenever it begins to listen, and when it listens again after the
	// connection was lost. It notices a lost connection within seconds, even on a silent network.
	// It may hear this process's own announcements too. heard must not block.
	//
	// It returns ctx's error when ctx ends. It returns an error that is [ErrUnsupported] at once if
	// the store has the method but nothing to listen to, so that only polling is left. [ErrClosed]
	// says that the store was closed.
	Listen(ctx context.Context, heard func(key string)) error
	// Announce notifies the listeners of all processes, in a statement of its own. Send it after
	// the release has been committed. It does nothing if no process can listen, or if Listen
	// notices by itself.
	Announce(ctx context.Context, keys []string) error
}

// Waker is a Notifier that can wake one process of those that wait for a key. Announce wakes all of
// them, although only one can get the key and the others ask the store in vain.
type Waker interface {
	Notifier
	// Wakes reports whether Wake notifies any process.
	Wakes() bool
	// ListenAs is Listen for a process that registers with Register. heard is also called for what
	// Wake sends to this process; chosen then is true, and no other process was notified. If this
	// process does not wait for key, it should call Unregister and then Wake, so that the next process
	// is notified.
	ListenAs(ctx context.Context, process Owner, heard func(key string, chosen bool)) error
	// Wake notifies one process of each key: of those that wait and listen, the one that follows
	// process in the order of owners, or the first after the last. So processes that wake one
	// another take turns. If Wake knows of no other process, it notifies all, as Announce does. A
	// listener that does not use ListenAs does not hear of a key that one process was notified of.
	Wake(ctx context.Context, process Owner, keys []string) error
}

// Registry is a Store that records which processes wait for a key, so that only they are notified.
type Registry interface {
	// Register registers a process, which is an Owner of its own, as waiting for keys, for d unless
	// repeated. identity names it to operators, and may be empty. Read the keys once more
	// afterwards, because a holder that released before does not notify. A holder that is about to
	// commit does not either; polling covers that.
	Register(ctx context.Context, process Owner, identity string, keys []string, d time.Duration) error
	// Unregister removes the registration.
	Unregister(ctx context.Context, process Owner, keys []string) error
	// Awaited reports for each key whether another process, or any ticket, waits for it. It writes
	// nothing.
	Awaited(ctx context.Context, process Owner, keys []string) ([]bool, error)
}

// Census is a Registry that counts.
type Census interface {
	Registry
	// Waiting returns for each key how many processes are registered as waiting for it. It may stop
	// counting at 100. It writes nothing.
	Waiting(ctx context.Context, keys []string) ([]int, error)
}

// Ticket is one waiter's position in a fair queue.
type Ticket struct {
	// AcquireRequest is what the waiter wants; its Owner is the waiter.
	AcquireRequest
	// Priority is 1 to 10. A ticket goes before later ones and before those of lower priority. Each
	// level of priority is a head start of [PriorityStep] and no more, so that no ticket is
	// overtaken forever.
	Priority int
}

// PriorityStep is how much later a waiter may join and still go before one whose priority is lower
// by one.
const PriorityStep = 10 * time.Second

// HeadStart is what the ticket's priority is worth.
func (t Ticket) HeadStart() time.Duration { return time.Duration(t.Priority) * PriorityStep }

// CheckPriority returns an error that wraps [ErrConfig] unless the priority is 1 to 10.
func (t Ticket) CheckPriority() error {
	if t.Priority < 1 || t.Priority > 10 {
		return fmt.Errorf("%w: a ticket for %q has priority %d; use 1 to 10",
			ErrConfig, t.Key, t.Priority)
	}
	return nil
}

// QueuePosition is the position of a ticket.
type QueuePosition struct {
	// Granted says that the key was passed on to the waiter. Token and Remaining are its lease's.
	// Otherwise Token is that of the key's last grant, or 0 if it is unknown.
	Granted bool
	Token   Token
	// Remaining is the time to expiry by the store's clock, of the waiter's own lease if Granted
	// and of the holder's otherwise. 0 or less: the key is free or has expired, and the head of the
	// queue may claim it.
	Remaining time.Duration
	// Ahead is the number of live tickets before this one.
	Ahead int
	// Note is the holder's, as in its request: see [SplitNote]. It is empty if the key was
	// released, and may be that of a last holder whose lease has expired.
	Note string
	// Shared says that readers hold the key; see [Sharer].
	Shared bool
	// Missing says that the ticket does not exist, or has expired for want of a heartbeat: Join again.
	Missing bool
	// Err is set if this item alone failed. The other fields then mean nothing.
	Err error
}

// Passed is the answer to one Pass.
type Passed struct {
	// Gone says that there was nothing to release, as in Released.
	Gone bool
	// To is the new holder, with Token. It is the zero Owner if no ticket waited. It is also zero
	// if an earlier try had an unknown outcome, so that the new holder is unknown.
	To    Owner
	Token Token
	Err   error
}

// Queue is a Store that keeps waiters in order. A fair client sends every acquire, claim and
// release through it. A client that does not jumps the queue.
//
// A ticket lives for its TTL after its last Join. A dead ticket is passed over, and goes to the end
// of the queue if its waiter joins again. A ticket that was used does not come back while its
// waiter has the key: a Join then has no effect.
type Queue interface {
	// Join puts each ticket at the end of its key's queue. For a ticket that is there it is a
	// heartbeat, and the position stays. unknown says that an earlier try had no answer: it may yet
	// be carried out, and make the tickets again after a Leave.
	Join(ctx context.Context, tickets []Ticket) (unknown bool, err error)
	// Leave removes tickets. A missing ticket is no error. A lease that its waiter was granted
	// meanwhile must be released like any other.
	Leave(ctx context.Context, waiters []Lease) error
	// QueuePositions returns the positions of tickets, each named by key and owner. It writes nothing.
	QueuePositions(ctx context.Context, waiters []Lease) ([]QueuePosition, error)
	// Claim grants each free or expired key to its requester, unless another's live ticket is ahead
	// of the requester's, or exists at all if the requester has none. It uses up the ticket. The
	// answers are those of Acquire. A key that was passed to the requester meanwhile is granted,
	// and its lease extended to the request's TTL from now.
	Claim(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
	// Pass ends each lease, as Release does, and grants its key to the first live ticket, if there
	// is one, for that ticket's TTL. It uses up the ticket. A key whose tokens have run out is only
	// released.
	Pass(ctx context.Context, leases []Lease) ([]Passed, error)
}
