package rowlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
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

// Nobody rests on a hint: with all of them lost, every waiter is served as soon as a poll allows.
func TestWithEveryHintLostWaitersAreServedByThePoll(t *testing.T) {
	eachMode(t, func(s *scene, m mode) {
		if m.silent {
			s.Skip("has no hints to lose")
		}
		a, b := s.deafClient(m), s.deafClient(m)
		for range 3 {
			s.handAcross(a, b, hintPoll+waitSlack)
			s.handAcross(b, a, hintPoll+waitSlack)
		}
	})
}

func (s *scene) deafClient(m mode) *rowlock.Client {
	s.Helper()
	lanes := s.env.Dialect.Lanes()
	if lanes == 0 {
		lanes = 2
	}
	store, _, err := table.Open(s.Context(), s.env.Pool(s), s.env.Dialect, table.Options{Lanes: lanes, Timeout: 5 * time.Second, Hints: true})
	s.ok(err)
	s.Cleanup(func() { s.ok(store.Close()) })
	c, err := rowlock.New(deaf{store}, sceneConfig(m.set, withPoll(hintPoll)))
	s.ok(err)
	s.Cleanup(func() { s.ok(c.Close()) })
	return c
}

// handAcross has b wait for what a holds, for so long that it looks as seldom as it ever does, and returns how long it took to be
// served after the key came free.
func (s *scene) handAcross(a, b *rowlock.Client, limit time.Duration) time.Duration {
	s.Helper()
	l := s.take(a, "across")
	s.aged("across")
	waiting := s.waits(s.Context(), b, "across")
	s.atLeast(hintPoll)
	freed := time.Now()
	s.ok(l.Unlock(s.Context()))
	g := s.granted(waiting)
	took := g.at.Sub(freed)
	if took > limit {
		s.Errorf("served %s after the key came free, want at most %s", took, limit)
	}
	s.ok(g.l.Unlock(s.Context()))
	return took
}

// aged makes a hold an old one, at which an unfair client looks as seldom as it ever does.
func (s *scene) aged(key string) {
	s.Helper()
	minute := map[string]string{"sqlite": `60000`, "pgx": `interval '1 minute'`, "mysql": `INTERVAL 1 MINUTE`}[s.env.Driver]
	s.exec(s.env.DB, `UPDATE {rowlock} SET acquired_at = acquired_at - `+minute+` WHERE {key} = ?`, []byte(key))
}

// A notification that cannot be sent cuts the connection it was to go over, and costs nobody more than a poll.
func TestAHintThatCannotBeSentDelaysNobodyBeyondThePoll(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		for _, m := range []mode{{}, {fair: true}} {
			s.part(m.String(), func(s *scene) {
				lost := faultdb.NewCounter(faultdb.Always(faultdb.FailBeforeSend()))
				db, err := faultdb.Open(s.env.Driver, s.env.Source, faultdb.OnMatch("pg_notify", lost))
				s.ok(err)
				s.Cleanup(func() { s.ok(db.Close()) })
				a, b := s.clientOn(db, m.set, withPoll(hintPoll)), s.client(m.set, withPoll(hintPoll))
				for range 3 {
					s.handAcross(a, b, hintPoll+waitSlack)
				}
				s.eventually("a hint to be lost", func() bool { return lost.Faults() > 0 })
			})
		}
	})
}

// The connection that listens is killed: the wait goes on by the poll, and listens again.
func TestAWaitSurvivesItsListenersConnection(t *testing.T) {
	onScene(t, "postgres", func(s *scene) {
		for _, m := range []mode{{}, {fair: true}} {
			s.part(m.String(), func(s *scene) {
				a := s.client(m.set)
				name := strings.NewReplacer("/", "_", "#", "_").Replace(s.Name())
				b := s.with("application_name="+name).client(m.set, withPoll(hintPoll))
				ears := ` FROM pg_stat_activity WHERE application_name = '` + name[:min(63, len(name))] + `' AND (query LIKE 'LISTEN%' OR query LIKE '-- rowlock listens%')`
				l := s.take(a, "ears")
				waiting := s.waits(s.Context(), b, "ears")
				listens := func() bool { return s.number(`SELECT count(*)`+ears) == 1 }
				s.eventually("a connection to listen", listens)
				if n := s.number(`SELECT count(pg_terminate_backend(pid))` + ears); n != 1 {
					s.Fatalf("%d connections were killed", n)
				}
				freed := time.Now()
				s.ok(l.Unlock(s.Context()))
				g := s.granted(waiting)
				if took, limit := g.at.Sub(freed), hintPoll+waitSlack; took > limit {
					s.Errorf("served %s after the key came free, want at most %s", took, limit)
				}
				s.ok(g.l.Unlock(s.Context()))
				s.eventually("a connection to listen again", listens)
			})
		}
	})
}

// What hints are for: a waiter that would look only after seconds is served at once.
func TestAHintIsSoonerThanThePoll(t *testing.T) {
	const soon = time.Second
	eachMode(t, func(s *scene, m mode) {
		if m.silent || s.is("mysql", "mariadb") {
			s.Skip("has no hints")
		}
		seldom := func(c *rowlock.Config) {
			c.PollMax = 10 * time.Second
			if m.fair { // looks at a new ticket more often, however old the hold is
				c.PollMin = c.PollMax
			}
		}
		a, b := s.client(m.set), s.client(m.set, seldom)
		s.Logf("served after %s", s.handAcross(a, b, soon))
	})
}
