package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rowlockdb/rowlock/bench/internal/held"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Held are locks that one process holds at once.
type Held struct {
	TTL    string
	Crowds []Holding
}

// Holding is so many of them.
type Holding struct {
	Locks, Lost     int
	Bytes           float64 // of heap for a lock
	Statements      float64 // that renew, a second
	PerStatement    float64 // leases that each extends
	Client, Server  float64 // busy processors; 0 is not known
	Taking, Holding int     // of those lost, how many by the time that all were taken, and while they were held
	Taken           float64 // seconds
}

// takers are goroutines that take the locks and give them back.
const takers = 256

// errLost is a failure of the product, and not of the run.
var errLost = errors.New("held locks were lost")

// heldLocks holds ever more, each time in new tables.
func (s settings) heldLocks(ctx context.Context, k rig.Kind, p *rig.Progress) (*Held, error) {
	r := &Held{TTL: s.ttl.String()}
	var lost error
	for _, n := range s.held {
		h, err := s.hold(ctx, k, n, p)
		if err != nil {
			return r, fmt.Errorf("%d locks: %w", n, err)
		}
		r.Crowds = append(r.Crowds, h)
		if h.Lost > 0 && !s.short {
			lost = errors.Join(lost, fmt.Errorf("%d of %d: %w", h.Lost, n, errLost))
		}
	}
	return r, lost
}

func (s settings) hold(ctx context.Context, k rig.Kind, n int, p *rig.Progress) (h Holding, err error) {
	d, err := rig.OpenBeside(ctx, k, fmt.Sprintf("h%d_", n))
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c, err := held.Many(ctx, d, held.Config{Locks: n, Connections: d.Connections(3), TTL: s.ttl, Helpers: min(takers, n)}, p)
	if err != nil {
		return h, err
	}
	h = Holding{
		Locks: n, Lost: c.Lost, Bytes: c.Bytes, Statements: c.Renewals * 3 / s.ttl.Seconds(),
		PerStatement: c.PerRenewal, Client: c.Client, Taking: c.Taking, Holding: c.Holding, Taken: c.Taken.Seconds(),
	}
	if !math.IsNaN(c.Server) {
		h.Server = c.Server
	}
	return h, nil
}
