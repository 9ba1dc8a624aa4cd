package paxosbridge

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Pin says where a key is to be, whatever its heat.
type Pin uint8

const (
	// ByHeat: the key moves out when it is hot and back when it has cooled.
	ByHeat Pin = iota
	// Never: the key stays in the table, and comes back to it.
	Never
	// Always: the key goes to the cluster soon after it is asked for, and stays. Of bids one of eight is counted, so that it may be the eighth
	// or so before it is noticed.
	Always
)

// Config has what New needs besides its two stores. The zero Config has the defaults.
type Config struct {
	// Home is the number by which rows name this cluster, 1 to 32766. Default 1. Every client of the table must name the same cluster
	// by it.
	Home int
	// Hot is from how many bids (granted or refused), looks of waiters and hand-overs a second on, in this process, a key is hot.
	// Default 1000. One of eight is counted, for all of them.
	Hot float64
	// Cool is below how many it is cool. Default Hot/4, and less than Hot.
	Cool float64
	// Dwell is how long a key must be hot before it moves out, or cool before it comes back. Default 5 s.
	Dwell time.Duration
	// MinStay is how long a key stays at least where it has come to. Default 1 min.
	MinStay time.Duration
	// Most is how many keys may be in the cluster because of their heat, as this process sees it. Default 100.
	Most int
	// Watched is for how many keys heat is kept, the hottest. Default 1024. It bounds memory, however many keys there are.
	Watched int
	// Pin says of a key whether it is moved by its heat. nil is ByHeat for every key. It is called often and must be quick.
	Pin func(key string) Pin
	// Every is how often it is decided what moves. Default 1 s; negative: never by itself, only by MoveOut and MoveBack.
	Every time.Duration
	// Refresh is how often the homes of the keys that have moved are read anew, all in one statement. Default 30 s, or a third of
	// Delegation.
	Refresh time.Duration
	// MoveTimeout bounds one move, and with it how long the mover holds the key. Default 5 s.
	MoveTimeout time.Duration
	// Delegation, if it is not 0, allows ForceReturn: no lease of the cluster is granted or renewed beyond this long after its key's home was
	// last read from the database. It must be the same in every process, and longer than every TTL: choose twice the longest. The
	// price is that cluster leases cannot be renewed while the database is down for longer.
	Delegation time.Duration
	// Logger gets what is worth knowing. Default slog.Default().
	Logger *slog.Logger
	Hooks  Hooks
}

// Hooks are called when something has happened. They must not block. nil ones are not called.
type Hooks struct {
	// Moved is called when this process has brought a key to a home, or has helped to.
	Moved func(key string, home int, epoch int64, why string)
	// Stayed is called when a move was given up before anything was changed.
	Stayed func(key string, err error)
	// Recalled is called when the audit has found that the database had forgotten a move.
	Recalled func(key string, epoch int64)
}

func (c Config) withDefaults() (Config, error) {
	c.Home = cmp.Or(c.Home, 1)
	c.Hot = cmp.Or(c.Hot, 1000)
	c.Cool = cmp.Or(c.Cool, c.Hot/4)
	c.Dwell = cmp.Or(c.Dwell, 5*time.Second)
	c.MinStay = cmp.Or(c.MinStay, time.Minute)
	c.Most = cmp.Or(c.Most, 100)
	c.Watched = cmp.Or(c.Watched, 1024)
	c.Every = cmp.Or(c.Every, time.Second)
	c.Refresh = cmp.Or(c.Refresh, c.Delegation/3, 30*time.Second)
	c.MoveTimeout = cmp.Or(c.MoveTimeout, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Pin == nil {
		c.Pin = func(string) Pin { return ByHeat }
	}
	return c, c.check()
}

func (c *Config) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: paxosbridge: %s", lease.ErrConfig, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Home < 1 || c.Home >= returning:
		return bad("Home (%d) must be 1 to %d", c.Home, returning-1)
	case !(c.Cool > 0 && c.Cool < c.Hot): // also where one of them is not a number
		return bad("Cool (%g) must be above 0 and below Hot (%g): a key between them stays where it is", c.Cool, c.Hot)
	case c.Dwell < 0 || c.MinStay < 0:
		return bad("Dwell (%s) and MinStay (%s) must not be negative", c.Dwell, c.MinStay)
	case c.Most < 1 || c.Watched < c.Most:
		return bad("Most (%d) must be at least 1, and Watched (%d) at least Most", c.Most, c.Watched)
	case c.Refresh < 0 || c.MoveTimeout <= 0:
		return bad("Refresh (%s) and MoveTimeout (%s) must be positive", c.Refresh, c.MoveTimeout)
	case c.Delegation < 0 || c.Delegation > 0 && c.Refresh > c.Delegation/2:
		return bad("Delegation (%s) must be at least twice Refresh (%s)", c.Delegation, c.Refresh)
	}
	return nil
}
