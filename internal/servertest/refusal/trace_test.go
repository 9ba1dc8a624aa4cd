package refusal

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// tracing is a client with a trace, and its log.
func tracing(s *servertest.Scene, db *sql.DB, d dialect.Dialect) (*rowlock.Client, *clienttest.Journal) {
	s.Helper()
	log := &clienttest.Journal{}
	c, err := rowlock.Open(db, d, servertest.Config(func(cfg *rowlock.Config) {
		cfg.Trace.On, cfg.Logger = true, slog.New(slog.NewTextHandler(log, nil))
	}))
	s.OK(err)
	return c, log
}

// Its locks go on, the log names the cure once, and the missing events are counted.
func TestAUserWithoutTheTraceLocksAllTheSame(t *testing.T) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		name, seen := s.User()
		s.Grant(name)
		table := s.Ledger()
		s.Exec(s.Env.DB, `GRANT SELECT, UPDATE ON `+table+` TO `+name)
		seen.T = s.T
		db := seen.Env.Pool(s)
		c, log := tracing(s, db, s.Env.Dialect)
		seen.Cycle(db, table)
		l := s.Take(c, "k")
		s.OK(l.Unlock(s.Context()))
		_, err := c.Trace(s.Context(), rowlock.TraceFilter{})
		wantGrant(s, "Trace", err, "SELECT, INSERT, DELETE", "rowlock_trace")
		s.OK(c.Close())
		if n := c.Stats(); n.Traced != 0 || n.TraceDropped == 0 {
			s.Errorf("%d events are written and %d dropped", n.Traced, n.TraceDropped)
		}
		if n := strings.Count(log.String(), "GRANT SELECT, INSERT, DELETE ON"); n != 1 {
			s.Errorf("the log names the cure %d times:\n%s", n, log.String())
		}
	})
}

// The last connection is the application's. Its locks go on, and all events are counted as dropped.
func TestAPoolWithoutRoomHasNoTraceAndSaysSo(t *testing.T) {
	for limit, room := range map[int]bool{2: false, 3: true, 0: true} {
		s, _ := onFile(t, "_pragma=busy_timeout(4321)&_pragma=journal_mode(WAL)&_txlock=immediate")
		db := s.Dial("sqlite", s.Env.Source)
		db.SetMaxOpenConns(limit)
		c, log := tracing(s, db, sqlite.New())
		l := s.Take(c, "k")
		s.OK(l.Unlock(s.Context()))
		_, err := c.Trace(s.Context(), rowlock.TraceFilter{})
		s.OK(c.Close())
		told := strings.Contains(log.String(), "MaxOpenConns must be at least 3")
		if errors.Is(err, rowlock.ErrPool) == room || told == room || c.Stats().TraceDropped > 0 == room {
			s.Errorf("with %d connections: %v, %+v, and the log says:\n%s", limit, err, c.Stats(), log.String())
		}
	}
}
