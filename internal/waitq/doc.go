// Package waitq keeps the waiters of this process: a queue for each key whose head alone bids, the
// budget of hand-overs within the process, and one poller that reads all awaited keys in a single
// statement.
//
// To bid is to ask the store for the key. Nothing here talks to a store, and nothing here decides
// which owner has a key.
package waitq
