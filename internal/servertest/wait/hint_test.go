package wait

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
)

const hintPoll = 300 * time.Millisecond

// deaf is a store whose every hint is lost.
type deaf struct{ *table.Store }

func (deaf) Announce(context.Context, []string) error { return nil }

func (deaf) Wakes() bool { return false }

func (deaf) Listen(ctx context.Context, heard func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

// No waiter depends on a hint: if all are lost, each is served as soon as a poll allows.
func TestWithEveryHintLostWaitersAreServedByThePoll(t *testing.T) {
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		if m.Silent {
			s.Skip("has no hints to lose")
		}
		a, b, pulse := deafClient(s, m), deafClient(s, m), s.Pulse()
		for range 3 { // each is registered for a while after it has waited, and they share the polls
			handAcross(s, a, b, pulse, 2*hintPoll+waitSlack)
			handAcross(s, b, a, pulse, 2*hintPoll+waitSlack)
		}
	})
}

func deafClient(s *servertest.Scene, m servertest.Mode) *rowlock.Client {
	s.Helper()
	connections := s.Env.Dialect.Connections()
	if connections == 0 {
		connections = 2
	}
	store, _, err := table.Open(s.Context(), s.Env.Pool(s), s.Env.Dialect,
		table.Options{Connections: connections, Timeout: 5 * time.Second, Hints: true})
	s.OK(err)
	s.Cleanup(func() { s.OK(store.Close()) })
	c, err := rowlock.New(deaf{store}, servertest.Config(m.Set, servertest.WithPoll(hintPoll)))
	s.OK(err)
	s.Cleanup(func() { s.OK(c.Close()) })
	return c
}

// handAcross has b wait for what a holds until b's polls are as rare as they get. It returns the
// time from the release to b's grant.
func handAcross(s *servertest.Scene, a, b *rowlock.Client, pulse *servertest.Pulse,
	bound time.Duration,
) time.Duration {
	s.Helper()
	l := s.Take(a, "across")
	aged(s, "across")
	waiting := waits(s, s.Context(), b, "across")
	s.Elapse(hintPoll)
	freed := time.Now()
	s.OK(l.Unlock(s.Context()))
	g := granted(s, waiting)
	took := g.at.Sub(freed)
	if limit := pulse.Allow(bound); took > limit {
		s.Errorf("served %s after the release, want at most %s", took, limit)
	}
	s.OK(g.l.Unlock(s.Context()))
	return took
}

// aged makes a hold an old one, which an unfair client polls as rarely as it ever does.
func aged(s *servertest.Scene, key string) {
	s.Helper()
	minute := map[string]string{
		"sqlite": `60000`, "pgx": `interval '1 minute'`, "mysql": `INTERVAL 1 MINUTE`,
	}[s.Env.Driver]
	s.Exec(s.Env.DB, `UPDATE {rowlock} SET acquired_at = acquired_at - `+minute+` WHERE {key} = ?`,
		[]byte(key))
}

// A notification that cannot be sent cuts its connection, and delays no waiter by more than a
// poll.
func TestAHintThatCannotBeSentDelaysNoWaiterBeyondThePoll(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		for _, m := range []servertest.Mode{{}, {Fair: true}} {
			s.Part(m.String(), func(s *servertest.Scene) {
				lost := faultdb.NewCounter(faultdb.Always(faultdb.FailBeforeSend()))
				db, err := faultdb.Open(s.Env.Driver, s.Env.Source, faultdb.OnMatch("pg_notify", lost))
				s.OK(err)
				s.Cleanup(func() { s.OK(db.Close()) })
				a, b := s.ClientOn(db, m.Set, servertest.WithPoll(hintPoll)),
					s.Client(m.Set, servertest.WithPoll(hintPoll))
				pulse := s.Pulse()
				for range 3 {
					handAcross(s, a, b, pulse, hintPoll+waitSlack)
				}
				s.Eventually("a hint to be lost", func() bool { return lost.Faults() > 0 })
			})
		}
	})
}

// The connection that listens is killed: the wait goes on by polling, and the client listens
// again.
func TestAWaitSurvivesItsListenersConnection(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		for _, m := range []servertest.Mode{{}, {Fair: true}} {
			s.Part(m.String(), func(s *servertest.Scene) {
				a, pulse := s.Client(m.Set), s.Pulse()
				name := strings.NewReplacer("/", "_", "#", "_").Replace(s.Name())
				b := s.With("application_name="+name).Client(m.Set, servertest.WithPoll(hintPoll))
				ears := ` FROM pg_stat_activity WHERE application_name = '` + name[:min(63, len(name))] +
					`' AND (query LIKE 'LISTEN%' OR query LIKE '-- rowlock listens%')`
				l := s.Take(a, "ears")
				waiting := waits(s, s.Context(), b, "ears")
				listens := func() bool { return s.Number(`SELECT count(*)`+ears) == 1 }
				s.Eventually("a connection to listen", listens)
				if n := s.Number(`SELECT count(pg_terminate_backend(pid))` + ears); n != 1 {
					s.Fatalf("%d connections were killed", n)
				}
				freed := time.Now()
				s.OK(l.Unlock(s.Context()))
				g := granted(s, waiting)
				if took, limit := g.at.Sub(freed), pulse.Allow(hintPoll+waitSlack); took > limit {
					s.Errorf("served %s after the release, want at most %s", took, limit)
				}
				s.OK(g.l.Unlock(s.Context()))
				s.Eventually("a connection to listen again", listens)
			})
		}
	})
}

// Hints reduce latency: a waiter that would poll only after seconds is served at once.
func TestAHintIsSoonerThanThePoll(t *testing.T) {
	const soon = time.Second
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		if m.Silent {
			s.Skip("has no hints")
		}
		seldom := func(c *rowlock.Config) {
			c.PollMax = 10 * time.Second
			if m.Fair { // polls a new ticket more often, however old the hold is
				c.PollMin = c.PollMax
			}
		}
		a, b := s.Client(m.Set), s.Client(m.Set, seldom)
		s.Logf("served after %s", handAcross(s, a, b, s.Pulse(), soon))
	})
}
