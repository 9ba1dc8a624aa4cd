// Package mixed has the tests of LockEach on all databases: exclusive keys, shared keys and permits
// that processes take together while they are killed, and what they write under them.
package mixed
