// Package fence tests locks that are checked inside the application's own transactions: takeovers
// wait for a fence, a fence renews its lease, and a client that vanishes inside one is evicted.
package fence
