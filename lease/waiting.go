package lease

import (
	"context"
	"fmt"
	"time"
)

// The abilities of a [Store] below serve those who wait. None is needed to wait: a client that polls with Inspect is always
// right. They make it sooner, cheaper, or fair. A client finds them once, by type assertion.

// HandOver gives a lease that is held straight to its next owner.
type HandOver struct {
	From Lease
	// To is for the same key. Its TTL counts from the hand-over.
	To AcquireRequest
}

// Passer is a Store that can hand a lease over in one change of its row, instead of a release and an acquire.
type Passer interface {
	// HandOver grants each To if the row still names From, expired or not. Granted false says that it does not, or that the
	// key's tokens have run out: nothing was changed, and Holder is not filled in. A repeated request returns the lease as it is.
	// An item's error that is [ErrMoved] says that From was given up, and To was granted nothing: the key is on its way to another home.
	HandOver(ctx context.Context, items []HandOver) ([]Acquired, error)
}

// Notifier is a Store that can tell the waiters of other processes that a key has come free, sooner than a poll would. What it
// tells is a hint: it may be lost, late, repeated or wrong, and nobody may rest on it.
type Notifier interface {
	// Listen calls heard with each key that another process announces, and with "" when any may have come free: whenever it
	// begins to listen, also anew after the connection was lost, which it finds out within seconds even if the network says
	// nothing. What this process announces may be heard too. heard must not block.
	//
	// It returns when ctx ends, with ctx's error; or at once, with an error that is [ErrUnsupported], where the store has the
	// method but nothing to listen to: then there is only the poll. [ErrClosed] says the store was closed.
	Listen(ctx context.Context, heard func(key string)) error
	// Announce tells the listeners of all processes, in a statement of its own. Send it after the release has been committed.
	// Where nobody can listen, or where Listen notices by itself, it does nothing.
	Announce(ctx context.Context, keys []string) error
}

// Waker is a Notifier that can wake one process of those that wait for a key. Announce wakes all of them: one gets the key, and the
// others have asked the store in vain.
type Waker interface {
	Notifier
	// Wakes reports whether Wake tells anybody.
	Wakes() bool
	// ListenAs is Listen for process, under whose name Await is called, and hears what Wake tells it. chosen says that no other process was told: if process does not wait for key, it should take back its Await and
	// call Wake, so that the next process is told.
	ListenAs(ctx context.Context, process Owner, heard func(key string, chosen bool)) error
	// Wake tells one process of each key: of those that wait and listen, the one that follows process in the order of owners, or the
	// first after the last. So processes that wake one another take turns. If it knows of none but process, it tells all, as
	// Announce does. A listener that does not use ListenAs
	// hears of no key that a process was told of.
	Wake(ctx context.Context, process Owner, keys []string) error
}

// Interest is a Store that remembers which processes wait for a key, so that nobody else need be told of it.
type Interest interface {
	// Await notes that a process, an owner of its own, waits for keys: for so long, unless repeated. Look at the keys once more
	// after it: who released before will not tell. (Who is about to commit will not either; that is what the poll is for.)
	Await(ctx context.Context, process Owner, keys []string, d time.Duration) error
	// Desist takes that back.
	Desist(ctx context.Context, process Owner, keys []string) error
	// Awaited reports for each key whether any process but this one waits for it, or any ticket stands. It writes nothing.
	Awaited(ctx context.Context, process Owner, keys []string) ([]bool, error)
}

// Census is an Interest that counts.
type Census interface {
	Interest
	// Waiting returns for each key how many processes wait for it, as far as Await has said so. It counts to 100 and writes nothing.
	Waiting(ctx context.Context, keys []string) ([]int, error)
}

// Ticket is one waiter's place in a fair queue.
type Ticket struct {
	// AcquireRequest is what the waiter wants; its Owner is the waiter.
	AcquireRequest
	// Priority is 1 to 10. A ticket goes before all that have come later and before those of lower priority, except that each
	// level is worth a head start of [PriorityStep] and no more: nobody is overtaken for ever.
	Priority int
}

// PriorityStep is by how much later a waiter may come and still go before one whose priority is lower by one.
const PriorityStep = 10 * time.Second

// HeadStart is what the ticket's priority is worth.
func (t Ticket) HeadStart() time.Duration { return time.Duration(t.Priority) * PriorityStep }

// CheckPriority returns an error that wraps [ErrConfig] unless the priority is 1 to 10.
func (t Ticket) CheckPriority() error {
	if t.Priority < 1 || t.Priority > 10 {
		return fmt.Errorf("%w: a ticket for %q has priority %d; use 1 to 10", ErrConfig, t.Key, t.Priority)
	}
	return nil
}

// Place is where a ticket stands.
type Place struct {
	// Granted says the key is the waiter's: somebody passed it on. Token and Remaining are the lease's.
	Granted bool
	Token   int64
	// Remaining is how long the waiter's lease (if Granted) or the holder's has still to go by the store's clock. 0 or less:
	// the key is free or has expired, and whoever stands first may claim it.
	Remaining time.Duration
	// Ahead is how many live tickets stand before this one.
	Ahead int
	// Note is the holder's.
	Note string
	// Missing says there is no such ticket (any more), or that it shows no sign of life: Join again.
	Missing bool
	// Err is set when this item alone failed; the other fields are then meaningless.
	Err error
}

// Passed is the answer to one Pass.
type Passed struct {
	// Gone says there was nothing to give up, as in Released.
	Gone bool
	// To is who has the key now, with Token; the zero Owner if nobody waited, or if an earlier try had an unknown outcome and it
	// is not known who was passed the key.
	To    Owner
	Token int64
	Err   error
}

// Queue is a Store that keeps waiters in order. In a fair client every acquire, claim and release goes through it; clients that
// do not are served out of turn. A ticket lives for its TTL after it last joined; a dead one is passed over, and goes to the end if
// it joins again. A ticket that was used up is not brought back while its waiter has the key: he then joins in vain.
type Queue interface {
	// Join gives each ticket its place at the end of its key's queue, or shows that it is still alive: the place then stays.
	Join(ctx context.Context, tickets []Ticket) error
	// Leave removes tickets. It is no error if they are gone. What a waiter was granted meanwhile is released like any lease.
	Leave(ctx context.Context, waiters []Lease) error
	// Places says where tickets stand, each named by key and owner. It writes nothing.
	Places(ctx context.Context, waiters []Lease) ([]Place, error)
	// Claim grants each key that is free or expired to its requester, unless a live ticket of another stands before the
	// requester's, or stands at all if the requester has none. The ticket is used up. The answers are those of Acquire. A key that was
	// passed to the requester meanwhile is granted, and its lease extended to the request's TTL from now.
	Claim(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
	// Pass gives up each lease as Release does, straight to the first live ticket of its key if there is one, for that ticket's
	// TTL. The ticket is used up. A key whose tokens have run out is only released.
	Pass(ctx context.Context, leases []Lease) ([]Passed, error)
}
