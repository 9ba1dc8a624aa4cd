package sqlstore

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// RowLocks is how a database locks rows in a transaction that is the caller's own.
type RowLocks interface {
	// LockRows is a SELECT of column for n values of it, a ? for each, that locks the rows one after the other until the transaction
	// ends, and no others. It waits for no longer than wait; where that cannot be said in the statement, Patience has said it before.
	// The names are quoted. Values are in the order of their text, for the database that takes them as they come.
	LockRows(table, column string, n int, wait time.Duration) string
	// AtOnce is the most values that one of these statements is to have. More are locked by several, in the same order.
	AtOnce() int
	// TryRows is the same without waiting: rows that are locked are left out.
	TryRows(table, column string, n int) string
	// Skipping returns a SELECT as one that locks its rows, and leaves out those that are locked.
	Skipping(query string) string
	// Patience has the statements of tx wait for locks no longer than wait, until restore gives back what was there before. restore
	// is nil where there is nothing to give back.
	Patience(ctx context.Context, tx lease.Runner, wait time.Duration) (restore func(context.Context) error, err error)
	// Waited says what an error has to do with waiting for a lock.
	Waited(err error) Wait
}

// Wait is what an error of a statement that locks says of the waiting.
type Wait uint8

const (
	// NoWait: it was something else.
	NoWait Wait = iota
	// TooLong: somebody else had the lock for all of the time.
	TooLong
	// TooLate: the transaction has read before, and what it has read is no longer the latest, so it cannot lock any more.
	TooLate
)
