package election

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock"
	later "github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

var (
	// ErrDrain is what Run returns, or tells [OnError], of a lead that had not returned within
	// [Drain] of the end of its ctx. The leadership was released while lead still ran.
	ErrDrain = errors.New("rowlock: lead did not return in time")
	// ErrPreferred is the cause of a lead's ctx that ends in favor of a preferred candidate.
	ErrPreferred = errors.New("rowlock: a preferred candidate wants to lead")
)

const longestRest = 30 * time.Second

// Option changes one call of Run.
type Option func(*settings) error

type settings struct {
	drain, restFor    time.Duration
	locking           []rowlock.Option
	ranked, preferred bool
	report            func(error)
}

func defaults() settings {
	log := later.Logger(slog.Default()) // a log that blocks must not keep a candidate from campaigning
	return settings{drain: 10 * time.Second, restFor: time.Second, report: func(err error) {
		log.Warn(err.Error())
	}}
}

// Drain bounds how long a leader that is to end may take: for so long after the end of its ctx, the
// lease is renewed and no other candidate leads. Then the leadership is released although lead
// still runs, and [OnError] gets [ErrDrain]. Run waits for lead all the same. Default 10 s. 0
// releases the leadership at the moment at which lead's ctx ends.
func Drain(d time.Duration) Option {
	return func(s *settings) error {
		if d < 0 {
			return fmt.Errorf("%w: Drain (%s) is negative; use 0 to wait for no lead",
				lease.ErrConfig, d)
		}
		s.drain = d
		return nil
	}
}

// Rest is how long a candidate leaves the leadership to others after its lead has returned by
// itself, a fifth more or less. If lead returns with an error, the pause doubles each time, up to
// 30 s, until a term has lasted for longer. Default 1 s. Make it longer than the Config.PollMax of
// the other candidates, or they may come too late.
func Rest(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("%w: Rest (%s) must be more than 0; leave it out for 1 s",
				lease.ErrConfig, d)
		}
		s.restFor = min(d, 1<<62) // a fifth more must not overflow: there would be no rest at all
		return nil
	}
}

// With gives options to the lock that the leader holds: a TTL, a Note that [Leader] shows, MaxIdle
// for a leader that must show progress. After the end by MaxHold or MaxIdle nothing is drained: the
// leadership is free when lead returns, or when the lease runs out.
func With(opts ...rowlock.Option) Option {
	return func(s *settings) error {
		s.locking = append(s.locking, slices.Clone(opts)...)
		return nil
	}
}

// OnError has f called with each error that Run goes on after: of the database, and of terms that
// end before the ctx of Run does. f is called on the goroutine of Run, or, for [ErrDrain], on one
// of its own while lead runs. Default: slog.Warn.
func OnError(f func(err error)) Option {
	return func(s *settings) error {
		if f == nil {
			return fmt.Errorf("%w: OnError's function is nil; leave the option out", lease.ErrConfig)
		}
		s.report = f
		return nil
	}
}

// Prefer says that the election has preferred candidates, as in the region that the data are in,
// and whether this one is. Every candidate must say so.
//
// A candidate that is not preferred leads only while no preferred candidate waits. When one comes,
// a leader that is not preferred is told within half a second and what the database takes: its ctx
// ends with [ErrPreferred], [Drain] counts, and the preferred candidate is the next leader. So it
// is after the death of a leader: candidates that are not preferred stand back. Preferred
// candidates are not replaced, nor ordered among themselves.
//
// It is a preference, and no part of what is guaranteed: at most a delay if it fails. A preferred
// candidate that dies while it waits keeps others from leading for its TTL. One whose lead always
// fails takes the leadership again and again: end the ctx of its Run.
//
// A preferred candidate that waits holds another lock, under PreferredKey. A leader that is not
// preferred reads it four times a second, in one statement for all elections of its client.
func Prefer(preferred bool) Option {
	return func(s *settings) error {
		s.ranked, s.preferred = true, preferred
		return nil
	}
}
