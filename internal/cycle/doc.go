// Package cycle finds calls that wait for each other. A call that holds something and waits for
// more records both in the store, reads which chains its own waits lead to, and ends with a
// [lease.DeadlockError] if it is the last of a cycle that began to wait. A call that holds nothing
// writes nothing.
//
// # Why no call is ended that is in no cycle
//
// A record counts until it expires, soon after its last heartbeat, and as long as the rows of its
// keys have the tokens that it names: of what its chain holds, and of what it waits for. So a
// record that a grant has left behind leads nowhere, even after the key was released again.
//
// A chain counts in a cycle only if its record was extended since this process first read it. The
// statement of a call that has ended, carried out late, makes a record that no call extends, or
// extends one to a moment that has passed. A reading whose answer comes late, because the process
// was stopped, is dropped.
//
// A call that stops waiting without a grant erases its record before it returns, or waits until it
// has expired.
//
// # Why one call of a cycle is ended, and no more
//
// Chains are ordered by when they began to wait, by the store's clock, and by name. Both are fixed
// by a chain's first record. If that took long, the chain gets another name and is recorded anew.
package cycle
