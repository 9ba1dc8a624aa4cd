package refusal

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
	"github.com/rowlockdb/rowlock/schema"
)

// onFile is a scene on a new SQLite file with rowlock's tables, and a source with these settings.
func onFile(t *testing.T, settings string) (s *servertest.Scene, path string) {
	s = &servertest.Scene{T: t}
	// A test's own folder has its name, and so the settings, which a path must not have.
	folder, err := os.MkdirTemp("", "rowlock")
	s.OK(err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path = filepath.Join(folder, "app #1.db")
	right, err := sqlite.Open(path)
	s.OK(err)
	s.OK(schema.Migrate(t.Context(), right, sqlite.New()))
	s.OK(right.Close())
	s.Env = &testdb.Env{
		Kind: testdb.Kinds[0], Dialect: sqlstore.Of(sqlite.New()),
		Source: "file:" + strings.ReplaceAll(path, "#", "%23") + "?" + settings,
	}
	return s, path
}

func TestOpenRefusesASQLitePoolThatDoesNotWait(t *testing.T) {
	for _, settings := range []string{"", "_txlock=immediate", "_pragma=busy_timeout(0)"} {
		t.Run(settings, func(t *testing.T) {
			s, path := onFile(t, settings)
			says := []string{
				"busy_timeout 0", "sqlite.Open(", path, "_pragma=busy_timeout(5000)",
				"_pragma=journal_mode(WAL)", "_txlock=immediate", "app%20%231.db",
			}
			db := s.Dial("sqlite", s.Env.Source)
			refused(s, db, sqlite.New(), rowlock.ErrConfig, says...)
			_, locker := forupdate.NewLocker(db, sqlite.New())
			_, cas := optimistic.New(db, sqlite.New())
			_, effects := once.New(db, sqlite.New(), nil)
			for _, err := range []error{locker, cas, effects} {
				s.WantErr(err, rowlock.ErrConfig)
			}
		})
	}
}

// A PRAGMA sets the one connection that it is sent on, and a pool opens others.
func TestOpenRefusesABusyTimeoutOfOneConnection(t *testing.T) {
	s, _ := onFile(t, "")
	db := s.Dial("sqlite", s.Env.Source)
	s.Exec(db, `PRAGMA busy_timeout = 5000`)
	refused(s, db, sqlite.New(), rowlock.ErrConfig, "one connection")
	_, err := once.New(db, sqlite.New(), nil)
	s.WantErr(err, rowlock.ErrConfig)
}

func TestTheDSNThatARefusalNamesIsRight(t *testing.T) {
	s, _ := onFile(t, "")
	_, err := rowlock.Open(s.Dial("sqlite", s.Env.Source), sqlite.New(), servertest.Config())
	s.WantErr(err, rowlock.ErrConfig)
	_, named, _ := strings.Cut(err.Error(), `sql.Open("sqlite", "`)
	named, _, _ = strings.Cut(named, `"`)
	opensInSilence(s, named)
}

func opensInSilence(s *servertest.Scene, source string) {
	s.Helper()
	var log strings.Builder
	c, err := rowlock.Open(s.Dial("sqlite", source), sqlite.New(),
		servertest.Config(servertest.WithLog(&log)))
	s.OK(err)
	s.OK(c.Close())
	if log.Len() > 0 {
		s.Errorf("opened %s with %q", source, log.String())
	}
}

func TestOpenWarnsOfDeferredTransactions(t *testing.T) {
	for settings, warned := range map[string]bool{
		"": true, "&_txlock=deferred": true, "&_txlock=immediate": false, "&_txlock=exclusive": false,
	} {
		for _, mode := range []string{"WAL", "DELETE"} {
			t.Run(mode+settings, func(t *testing.T) {
				s, _ := onFile(t, "_pragma=busy_timeout(4321)&_pragma=journal_mode("+mode+")"+settings)
				var log strings.Builder
				db := s.Dial("sqlite", s.Env.Source)
				db.SetMaxOpenConns(2)
				c, err := rowlock.Open(db, sqlite.New(), servertest.Config(servertest.WithLog(&log)))
				s.OK(err)
				defer c.Close()
				text := log.String()
				if got := strings.Contains(text, "begin deferred"); got != warned {
					s.Errorf("warned %v, want %v: %s", got, warned, text)
				}
				if warned && !strings.Contains(text, "_txlock=immediate") {
					s.Errorf("%q does not say the DSN", text)
				}
			})
		}
	}
}

// Another process may have the write lock while this one opens: that must not pass for an answer.
func TestTheProbeTellsTransactionsBesideAWriter(t *testing.T) {
	for setting, deferred := range map[string]bool{"deferred": true, "immediate": false} {
		s, path := onFile(t, "_pragma=busy_timeout(20)&_pragma=journal_mode(WAL)&_txlock="+setting)
		writer, err := sqlite.Open(path)
		s.OK(err)
		defer writer.Close()
		theirs := s.Begin(writer, nil)
		conn, err := s.Dial("sqlite", s.Env.Source).Conn(t.Context())
		s.OK(err)
		facts, err := s.Env.Dialect.Probe(t.Context(), conn)
		s.OK(err)
		if got := len(facts.Warnings) > 0; got != deferred {
			s.Errorf("%s: warnings %q", setting, facts.Warnings)
		}
		var ms int
		s.OK(conn.QueryRowContext(t.Context(), `PRAGMA busy_timeout`).Scan(&ms))
		if ms != 20 {
			s.Errorf("busy_timeout is %d after the probe, was 20", ms)
		}
		s.OK(conn.Close())
		s.OK(theirs.Rollback())
	}
}

// The error of a fence that met another writer names what a SQLite pool lacks.
func TestAFenceThatMeetsAWriterNamesTheSettings(t *testing.T) {
	s, path := onFile(t, "_pragma=busy_timeout(1)&_pragma=journal_mode(WAL)")
	db := s.Dial("sqlite", s.Env.Source)
	c := s.ClientOn(db)
	l := s.Take(c, "k")
	writer, err := sqlite.Open(path)
	s.OK(err)
	defer writer.Close()
	tx, theirs := s.Begin(db, nil), s.Begin(writer, nil)
	err = l.Fence(context.Background(), tx)
	s.WantErr(err, rowlock.ErrBusy)
	for _, word := range []string{"_txlock=immediate", "busy_timeout", "sqlite.Open"} {
		if !strings.Contains(err.Error(), word) {
			s.Errorf("%q does not say %q", err, word)
		}
	}
	s.OK(tx.Rollback())
	s.OK(theirs.Rollback())
}
