package paxosbridge

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Pin says where a key belongs, whatever its heat.
type Pin uint8

const (
	// ByHeat: the key moves out when it is hot, and back when it has cooled.
	ByHeat Pin = iota
	// Never: the key stays in the table, and moves back to it.
	Never
	// Always: the key moves to the cluster soon after its first attempts, and stays. One of eight
	// is counted, so that it may be noticed at about the eighth.
	Always
)

// returning is the placement of a key that is being taken back by force. No cluster may have this
// number.
const returning = 32767

// Config has what New needs besides its two stores. The zero Config has the defaults.
type Config struct {
	// Placement is the number of this cluster in the rows, 1 to 32766. Default 1. Every client of
	// the table must use the same number for the same cluster.
	Placement int
	// Heat says which keys move by their heat.
	Heat Heat
	// Pin says whether a key moves by its heat. nil is ByHeat for every key. It is called often and
	// must be quick.
	Pin func(key string) Pin
	// Every is the interval between decisions which keys move. Default 1 s. If it is negative, keys
	// move only by MoveOut and MoveBack.
	Every time.Duration
	// Refresh is the interval between reads of the rows of all keys in the cluster, in one
	// statement. Default 30 s, or a third of Delegation.
	Refresh time.Duration
	// MoveTimeout bounds each step of a move, and with it how long the mover holds the key. A mover
	// that gives up releases the key. If the store does not answer then, the bridge releases it
	// within 2.5 s of when the store answers again, instead of waiting for the lease's end. Default
	// 5 s.
	MoveTimeout time.Duration
	// Delegation, if it is not 0, allows ForceReturn. No lease of the cluster is then granted or
	// renewed beyond this long after its key's row was last read from the database. It must be the
	// same in every process and longer than every TTL: choose twice the longest. The price: while
	// the database is down for longer, leases of the cluster cannot be renewed.
	Delegation time.Duration
	// Logger logs moves, failed moves and failed audits. Default slog.Default(). Its handler is
	// called by a goroutine of its own, so that one that blocks holds up no move.
	Logger *slog.Logger
	Hooks  Hooks
}

// Heat says when a key is hot and when it is cool. The rates of the 1,024 hottest keys are kept, or
// of twice Most if that is more, however many keys there are.
type Heat struct {
	// Hot is the rate at which a key is hot: attempts (granted or refused), polls of waiters and
	// hand-overs per second in this process. Default 1000. One event of eight is counted, for all
	// of them.
	Hot float64
	// Cool is the rate below which a key is cool. It must be below Hot. Default Hot/4.
	Cool float64
	// Dwell is how long a key must be hot before it moves out, or cool before it moves back.
	// Default 5 s.
	Dwell time.Duration
	// MinStay is the least time that a key stays where it has moved to. Default 1 min.
	MinStay time.Duration
	// Most is how many keys may be in the cluster because of their heat, as this process sees it.
	// Default 100.
	Most int
}

// Hooks are called soon after an event, one after the other, by a goroutine of the bridge: one that
// blocks holds up the other hooks and no move. Close waits 1 s for it. A nil hook is not called.
type Hooks struct {
	// Moved is called when this process has moved a key, or has helped to, to placement:
	// PlacementTable or Config.Placement.
	Moved func(key string, placement int, epoch int64, why string)
	// Stayed is called when a move was given up before it changed anything.
	Stayed func(key string, err error)
	// Recalled is called when an audit has found a move that the database had forgotten.
	Recalled func(key string, epoch int64)
}

func (h Heat) withDefaults() Heat {
	h.Hot = cmp.Or(h.Hot, 1000)
	h.Cool = cmp.Or(h.Cool, h.Hot/4)
	h.Dwell = cmp.Or(h.Dwell, 5*time.Second)
	h.MinStay = cmp.Or(h.MinStay, time.Minute)
	h.Most = cmp.Or(h.Most, 100)
	return h
}

// watched is how many keys' rates are kept.
func (h Heat) watched() int { return max(1024, 2*min(h.Most, math.MaxInt/2)) }

func (c Config) withDefaults() (Config, error) {
	c.Placement = cmp.Or(c.Placement, 1)
	c.Heat = c.Heat.withDefaults()
	c.Every = cmp.Or(c.Every, time.Second)
	c.Refresh = cmp.Or(c.Refresh, c.Delegation/3, 30*time.Second)
	c.MoveTimeout = cmp.Or(c.MoveTimeout, 5*time.Second)
	c.Logger = tell.Logger(cmp.Or(c.Logger, slog.Default()))
	if c.Pin == nil {
		c.Pin = func(string) Pin { return ByHeat }
	}
	return c, c.check()
}

func (c *Config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: bridge: %s", lease.ErrConfig, fmt.Sprintf(format, args...))
	}
	switch h := c.Heat; {
	case c.Placement < 1 || c.Placement >= returning:
		return bad("Placement (%d) must be 1 to %d", c.Placement, returning-1)
	case !(h.Cool > 0 && h.Cool < h.Hot): // also if one of them is not a number
		return bad(
			"Heat.Cool (%g) must be above 0 and below Heat.Hot (%g), so that a key between them stays",
			h.Cool, h.Hot,
		)
	case h.Dwell < 0 || h.MinStay < 0:
		return bad("Heat.Dwell (%s) and Heat.MinStay (%s) must not be negative", h.Dwell, h.MinStay)
	case h.Most < 1:
		return bad("Heat.Most (%d) must be at least 1", h.Most)
	case c.Refresh < 0 || c.MoveTimeout <= 0:
		return bad("Refresh (%s) and MoveTimeout (%s) must be positive", c.Refresh, c.MoveTimeout)
	case c.Delegation < 0 || c.Delegation > 0 && c.Refresh > c.Delegation/2:
		return bad("Delegation (%s) must be at least twice Refresh (%s)", c.Delegation, c.Refresh)
	}
	return nil
}
