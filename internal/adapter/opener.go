package adapter

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Pool has connections to borrow: *sql.DB and *sqlx.DB do.
type Pool interface {
	Conn(ctx context.Context) (*sql.Conn, error)
}

// DB is a Pool that says how large it is: *sql.DB and *sqlx.DB do.
type DB interface {
	Pool
	Stats() sql.DBStats
}

// Opener opens the store on the tables that a dialect speaks to. A client knows no other way to a
// database, so that nothing of SQL is needed to read it.
type Opener interface{ opening() *Opening }

// Opening makes what embeds it an Opener. Nothing else is one, unless by embedding an Opener.
type Opening struct {
	Dialect any // the *sqlstore.Dialect, for packages with tables of their own
	Table   func(ctx context.Context, db DB, o OpenOptions) (Opened, error)
}

func (o *Opening) opening() *Opening { return o }

// OpeningOf is the opening of a dialect.
func OpeningOf(d Opener) *Opening { return d.opening() }

// OpenOptions are what a client's settings say of its store.
type OpenOptions struct {
	Strategy       Strategy
	TTL            time.Duration
	Connections    int // 0: as many as suit the database
	Evicts         bool
	RequireSync    bool
	DurableRelease bool
	Identity       string
	// Began is called after the store has begun an era of tokens above start, unless the database is
	// a file, where each opening may begin one.
	Began func(start lease.Token)
}

// Opened is a store that was opened.
type Opened struct {
	Store    lease.Table
	Server   string   // the product and its version
	Warnings []string // settings that weaken the guarantees without breaking them, each with its cure
}

// Place is where tables are and how they are reached, as the options of a dialect say.
type Place struct {
	Schema, Prefix string // dialect.Schema's and dialect.Prefix's
	Listen         string // the DSN of a connection to listen on, if that cannot be one of the pool's
	Pooled         bool   // pinned connections share the server's sessions with other clients
}

// Strategy is what an acquire tries first: see package dialect.
type Strategy uint8

// Update tries the row first, and Insert creates it first.
const (
	Update Strategy = iota
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
