package adapter

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// ErrNewEra is the error of a grant in an era that is held back. Nothing was granted.
var ErrNewEra = fmt.Errorf("%w: the database's server was started or has failed over, and a bridge "+
	"has not yet compared the cluster's keys with the table", lease.ErrBusy)

// EraGate is a store that can hold back what it would grant in a new era, while its caller finds
// out what the server has forgotten. Reads, renewals, releases and moves go on.
type EraGate interface {
	// Era is the start of the newest era that the store has met.
	Era() lease.Token
	// HoldEras has every grant fail with ErrNewEra in a later era than that, until admit is called
	// with its start by all who hold eras, or free is.
	HoldEras() (admit func(start lease.Token), free func())
	// MayDepart returns an error if a key that moved away now could come home in an epoch that is
	// not over by the database's clock. So a mover does not take a key that it cannot move.
	MayDepart(ctx context.Context, key string) error
}

type newest struct{}

// ReadNewest has a store with eras read from no server but those of its newest era. An old primary
// that takes no writes any more keeps its connections, and has rows that the new one has forgotten.
func ReadNewest(ctx context.Context) context.Context {
	return context.WithValue(ctx, newest{}, true)
}

// ReadsNewest reports whether ctx is one of ReadNewest.
func ReadsNewest(ctx context.Context) bool { return ctx.Value(newest{}) != nil }

type reading struct{}

// Reading has a store that is opened with ctx read, and nothing else: the opening writes nothing,
// so that it waits for no transaction that has a SQLite file, and the store can grant nothing.
func Reading(ctx context.Context) context.Context {
	return context.WithValue(ctx, reading{}, true)
}

// IsReading reports whether ctx is one of Reading.
func IsReading(ctx context.Context) bool { return ctx.Value(reading{}) != nil }
