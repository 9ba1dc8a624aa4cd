package section

import (
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// wire is a way to the database that counts round trips: how often an answer came after something
// was sent.
type wire struct{ trips atomic.Int64 }

// through returns the database as seen through a wire.
func through(s *servertest.Scene, w *wire) *servertest.Scene {
	s.Helper()
	address := addressOf(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.OK(err)
	var all sync.WaitGroup
	s.Cleanup(all.Wait)
	s.Cleanup(func() { _ = l.Close() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			var sent atomic.Bool
			pass := func(to, from net.Conn, seen func()) {
				defer to.Close()
				_, _ = io.Copy(to, io.TeeReader(from, observer(seen)))
			}
			all.Go(func() { pass(server, client, func() { sent.Store(true) }) })
			all.Go(func() {
				pass(client, server, func() {
					if sent.CompareAndSwap(true, false) {
						w.trips.Add(1)
					}
				})
			})
		}
	})
	e := *s.Env
	e.Source = strings.Replace(e.Source, address, l.Addr().String(), 1)
	return &servertest.Scene{T: s.T, Env: &e}
}

type observer func()

func (f observer) Write(b []byte) (int, error) { f(); return len(b), nil }

// addressOf finds host:port in a DSN.
func addressOf(s *servertest.Scene) string {
	_, rest, _ := strings.Cut(s.Env.Source, "@")
	rest = strings.TrimPrefix(rest, "tcp(")
	return rest[:strings.IndexAny(rest, "/)")]
}

// trips are round trips by step.
type trips map[string]int64

// What a section costs that is written out: a round trip for each statement, as the application's
// own would have without parameters. Unlock after UnlockTx cannot know whether the transaction was
// committed, and reads the row in place of its release. That no other process waits is asked once in
// a moment, which is long here.
func TestEachStatementOfASectionIsARoundTrip(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		table := s.Ledger()
		for _, hints := range []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff} {
			for _, within := range []bool{false, true} {
				want := trips{"lock": 1, "fence": 1, "release": 0, "unlock": 1}
				if within {
					want["release"] = 1
				}
				if got := written(s, table, hints, within); !maps.Equal(got, want) {
					s.Errorf("hints %v, UnlockTx %v: %v, want %v", hints, within, got, want)
				}
			}
		}
	})
}

// written is what the last of some sections costs, which has all connections, and knows all
// statements.
func written(s *servertest.Scene, table string, hints rowlock.Hints, within bool) (got trips) {
	s.Helper()
	var connections, user wire
	ctx := s.Context()
	c := through(s, &connections).Client(func(c *rowlock.Config) {
		c.Hints, c.PollMin, c.PollMax = hints, servertest.Patience, servertest.Patience
	})
	db := through(s, &user).Env.Pool(s)
	db.SetMaxOpenConns(1)
	for range 4 {
		got = trips{}
		step := func(name string, f func() error) {
			before := connections.trips.Load() + user.trips.Load()
			s.OK(f())
			got[name] = connections.trips.Load() + user.trips.Load() - before
		}
		var l *rowlock.Lock
		step("lock", func() (err error) { l, err = c.Lock(ctx, "it's a \"key\"?\\\x00\xff"); return err })
		tx, err := db.BeginTx(ctx, nil)
		s.OK(err)
		step("fence", func() error { return l.Fence(ctx, tx) })
		_, err = tx.ExecContext(ctx, `UPDATE `+table+` SET n = n + 1 WHERE id = 1`)
		s.OK(err)
		step("release", func() error {
			if within {
				return l.UnlockTx(ctx, tx)
			}
			return nil
		})
		s.OK(tx.Commit())
		step("unlock", func() error { return l.Unlock(ctx) })
	}
	return got
}
