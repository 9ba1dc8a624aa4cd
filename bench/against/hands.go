package main

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/bench/internal/raw"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// hand is a connection by hand. One worker has it to itself, or several share it, a statement at a time: there is no line to stand in
// for whichever is free, and no colder connection than one needs.
type hand struct {
	*rig.Hand
	sync.Mutex

	raw raw.Statements
}

// hands are as many connections as the floor is given at most.
type hands struct {
	d   *rig.Database
	all []*hand
}

const mostHands = 64

// ownLocks are the locks that servers have themselves, by driver. Whoever waits does so in the server.
var ownLocks = map[string]map[string]string{
	"pgx": {
		"try":    "SELECT pg_try_advisory_lock(hashtextextended(?, 0))",
		"lock":   "SELECT pg_advisory_lock(hashtextextended(?, 0)) IS NOT NULL",
		"unlock": "SELECT pg_advisory_unlock(hashtextextended(?, 0))",
	},
	"mysql": {
		"try":    "SELECT GET_LOCK(?, 0)",
		"lock":   "SELECT GET_LOCK(?, 60)",
		"unlock": "SELECT RELEASE_LOCK(?)",
	},
}

func openHands(ctx context.Context, d *rig.Database, n int) (*hands, error) {
	all := &hands{d: d}
	read := make(map[string]string)
	for name, text := range ownLocks[d.Driver] {
		read[name] = d.SQL(text)
	}
	for range n {
		h, err := rig.NewHand(ctx, d, naiveStatements(d), read)
		if err != nil {
			return all, err
		}
		one := &hand{Hand: h}
		all.all = append(all.all, one)
		if one.raw, err = raw.Prepare(ctx, d, h.Raw()); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (all *hands) close() {
	if all == nil {
		return
	}
	for _, h := range all.all {
		h.Close()
	}
}

// of is the worker's hand.
func (all *hands) of(worker int) *hand { return all.all[worker%len(all.all)] }

// use runs a statement.
func (h *hand) use(do func() error) error {
	h.Lock()
	defer h.Unlock()
	return do()
}
