package sqlstore

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// RowLocks is how a database locks rows in the caller's own transaction.
type RowLocks interface {
	// LockRows is a SELECT of column for n values of it, a ? for each. It locks the rows one
	// after the other until the transaction ends, and no others. It waits for at most wait; if
	// the statement cannot say so, Patience has said it before. The names are quoted. Values
	// are in the order of their text, for the database that takes them in the given order.
	LockRows(table, column string, n int, wait time.Duration) string
	// AtOnce is the largest number of values for one of these statements. More are locked by
	// several, in the same order.
	AtOnce() int
	// TryRows is LockRows without waiting: it leaves out rows that are locked.
	TryRows(table, column string, n int) string
	// Skipping returns a SELECT as one that locks its rows, and leaves out those that are locked.
	Skipping(query string) string
	// Patience has the statements of tx wait for locks for at most wait, until restore puts the
	// previous limit back. restore is nil if there is nothing to restore.
	Patience(ctx context.Context, tx lease.Runner,
		wait time.Duration) (restore func(context.Context) error, err error)
	// Waited says whether an error comes from waiting for a lock.
	Waited(err error) Wait
}

// Wait says how an error of a statement that locks is related to waiting.
type Wait uint8

const (
	// NoWait: it is not.
	NoWait Wait = iota
	// TooLong: another transaction had the lock for all of the time.
	TooLong
	// TooLate: the transaction has read before, and what it has read is no longer the latest,
	// so it cannot lock any more.
	TooLate
)
