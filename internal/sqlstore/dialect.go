// Package sqlstore is what each database is told and what its answers mean.
//
// A [Dialect] is a description without state: names, SQL text and the meaning of errors. One room
// per database (dialect/postgres, dialect/mysql, dialect/sqlite) is the only place that imports that
// database's driver. The SQL stands in .sql files per room, under the same section names everywhere.
package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Dialect speaks to one kind of database.
type Dialect interface {
	// Name is "postgres", "mysql" (which speaks to MariaDB too) or "sqlite".
	Name() string
	// Names says where the tables are. The caller checks it.
	Names() Names
	// At returns the same dialect for the rows of another home. A row has one home: to the statements of every other home it is a
	// key that they must not touch, so that two kinds of lock cannot both think that they have it.
	At(home int) Dialect
	// Text returns the SQL of a section with the names filled in. See the .sql files.
	Text(section string) string
	// List encodes keys as the single parameter of a section that takes a list, so that one prepared statement serves
	// every size.
	List(keys []string) any

	// Setup makes the settings of a session that rowlock keeps to itself.
	Setup(ctx context.Context, s *Session) error
	// Probe finds out whether the server can be trusted with locks. An error wraps one of lease's refusals and names the
	// cure; warnings are for the log.
	Probe(ctx context.Context, conn *sql.Conn) (Facts, error)
	// Classify says what an error means for the statement that returned it.
	Classify(err error) Verdict
	// Lanes is the most connections that are of use for writing; 0 means as many as one likes.
	Lanes() int

	// Acquire, Renew and Release are the statements whose sequence differs between databases. They run once, without
	// retries; an error is about the whole call and is meant for Classify.
	Acquire(ctx context.Context, s *Session, strategy Strategy, req lease.AcquireRequest) (lease.Acquired, error)
	Renew(ctx context.Context, s *Session, reqs []lease.RenewRequest) ([]lease.Renewed, error)
	Release(ctx context.Context, s *Session, l lease.Lease) (lease.Released, error)
	// HandOver changes the owner of one row. Not granted: the row does not name From.
	HandOver(ctx context.Context, s *Session, h lease.HandOver) (lease.Acquired, error)

	Batch
	Queue
}

// Strategy is what an acquire tries first. Both work on the same rows and give the same guarantees, so that clients of
// either kind can share a table.
type Strategy uint8

const (
	// Update tries the row first and creates it if there is none: for keys that are locked again and again.
	Update Strategy = iota
	// Insert creates the row first and looks at it if there is one: for keys that are used once, as an order's.
	Insert
)

// String names the strategy.
func (s Strategy) String() string {
	switch s {
	case Update:
		return "update"
	case Insert:
		return "insert"
	}
	return fmt.Sprintf("strategy(%d)", uint8(s))
}

// Facts is what a probe learned.
type Facts struct {
	// Server is the product and its version, for messages: "PostgreSQL 15.18".
	Server string
	// SchemaVersion is the version of rowlock's tables.
	SchemaVersion int
	// Warnings are settings that weaken the guarantees without breaking them, each with its cure.
	Warnings []string
}

// Micros converts a duration to whole microseconds, the resolution of the databases' clocks. Rounded up: a lease is never
// shorter than asked for, and never zero.
func Micros(d time.Duration) int64 { return RoundUp(d, time.Microsecond) }

// RoundUp is how many of unit it takes to last for d. It does not add before it divides: that would make the longest duration there is,
// which people take for ever, a negative one, and a lease of it one that has run out.
func RoundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// Bytes returns the owner as a statement parameter.
func Bytes(o lease.Owner) []byte { return o[:] }

// SchemaVersion is the version of rowlock's tables that this version of rowlock works with.
const SchemaVersion = 1
