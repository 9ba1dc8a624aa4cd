// Package semaphore lets at most a number of callers work at a time, in all processes together: n
// reports that are made at once, n connections to a supplier, n jobs on a machine.
//
// A permit is a slot: an ordinary lock of a client, on a key of its own. So a permit is renewed
// while it is held, ends when its process dies, and has a token and a Fence for each slot. The
// slots of "reports" are the keys "semaphore/reports/000", "semaphore/reports/001" and so on.
//
// # What it guarantees
//
// At most as many slots are held at a time as the limit says. The statement that grants a slot
// checks the limit: a process that uses another number gets a [*LimitError] that names both. A slot
// is held until Release, or until its lease has run out, as any lock. After that its holder may
// still work: Fence says so in its transaction, and keeps the slot from being granted until that
// has ended.
//
// Resize changes the limit in all processes while they work. It takes no permit away: after it has
// made the limit smaller, none is granted until fewer are held than the new limit. Processes that
// have used the semaphore follow at their next call. A process that starts must name the limit that
// is in force.
//
// # Waiting
//
// One waiter of each semaphore asks for slots, and all others wait behind it for the lock
// "semaphore/NAME/queue", in the order that the client gives: by ticket in a Fair client. A release
// in the same process wakes the one at once, and so does a release in another process where the
// database tells of it, as it does of locks. Otherwise the waiter finds it by asking, every 10 ms
// at first, and every 250 ms, a third more or less, in the end.
//
// The calls of one Semaphore are served in the order in which they come, unless the client is Fair.
// The first of them asks for those behind it too, in one statement, if enough slots seem free, and
// keeps the turn for them for 20 ms.
//
// A call that comes when a slot is free takes it, even if calls of other processes wait. In a Fair
// client so does one before calls of its own process. So a call for many slots can starve while
// calls for few keep coming. With [InOrder] every call takes its turn, and the slots
// that are released are kept for the call at the head, however many it wants: it waits for the
// permits that are held when its turn comes, and for no later ones. That costs a lock and its
// release for each call.
package semaphore
