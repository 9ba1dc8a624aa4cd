package sqlite_test

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
	sqlite3 "modernc.org/sqlite/lib"
)

// watched is a session whose releases may be relaxed. It notes how durable the commit of each
// statement is that changes a row.
type watched struct {
	*testing.T
	d       *sqlstore.Dialect
	s       *conn.Session
	level   string
	commits []string
	broken  string // the setting that cannot be made
	fault   faultdb.Fault
}

// watch opens a file with these settings.
func watch(t *testing.T, settings string) *watched {
	t.Helper()
	w := &watched{T: t, d: sqlstore.Of(sqlite.New()), level: "FULL"}
	source := "file:" + filepath.Join(t.TempDir(), "x.db") + "?_pragma=busy_timeout(5000)&" + settings
	db, err := faultdb.Open("sqlite", source, faultdb.Func(w.note))
	w.ok(err)
	t.Cleanup(func() { _ = db.Close() })
	w.ok(schema.Migrate(t.Context(), db, sqlite.New()))
	pinned, err := db.Conn(t.Context())
	w.ok(err)
	w.s = conn.NewSession(pinned)
	t.Cleanup(w.s.Discard)
	w.s.EraAt(0)
	w.s.Relaxed = true
	w.ok(w.d.Setup(t.Context(), w.s))
	return w
}

func (w *watched) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *watched) note(op faultdb.Op) faultdb.Fault {
	if !op.Executes() {
		return faultdb.None
	}
	if level, found := strings.CutPrefix(op.Query, "PRAGMA synchronous = "); found {
		if level == w.broken {
			return w.fault
		}
		w.level = level
	}
	if strings.HasPrefix(op.Query, "UPDATE") || strings.HasPrefix(op.Query, "INSERT") {
		w.commits = append(w.commits, w.level)
	}
	return faultdb.None
}

// wants fails the test unless do changes rows at this level, and leaves the next commit durable.
func (w *watched) wants(what, level string, n int, do func() error) {
	w.Helper()
	w.commits = nil
	w.ok(do())
	if want := slices.Repeat([]string{level}, n); !slices.Equal(w.commits, want) || w.level != "FULL" {
		w.Errorf("%s committed at %q, want %q, and left %s", what, w.commits, want, w.level)
	}
}

func (w *watched) acquire(key string) (l lease.Lease) {
	w.Helper()
	l = lease.Lease{Key: key, Owner: lease.NewOwner()}
	got, err := w.d.Acquire(w.Context(), w.s, adapter.Insert,
		lease.AcquireRequest{Key: key, Owner: l.Owner, TTL: time.Hour})
	w.ok(err)
	l.Token = got.Token
	return l
}

func (w *watched) apply(changes ...sqlstore.Change) error {
	got, err := w.d.Apply(w.Context(), w.s, changes, false)
	for i := range got {
		if got[i].Outcome != sqlstore.Done {
			w.Errorf("change %d: %+v", i, got[i])
		}
	}
	return err
}

func (w *watched) release(l lease.Lease) error {
	_, err := w.d.Release(w.Context(), w.s, l)
	return err
}

const wal = "_pragma=journal_mode(WAL)"

// Only a transaction that does nothing but release is not written to the disk at once, and only in
// WAL mode, and only if no other connection shares the cache: a grant on that one would not be
// written either.
func TestOnlyReleasesAreRelaxed(t *testing.T) {
	for settings, relaxed := range map[string]string{
		wal: "NORMAL", wal + "&cache=private": "NORMAL", "_pragma=journal_mode(DELETE)": "FULL",
		wal + "&cache=shared": "FULL",
	} {
		t.Run(settings, func(t *testing.T) {
			w := watch(t, settings)
			a, b, c, d := w.acquire("a"), w.acquire("b"), w.acquire("c"), w.acquire("d")
			to := lease.NewOwner()
			w.wants("an acquire", "FULL", 1, func() error { w.acquire("e"); return nil })
			w.wants("a release", relaxed, 1, func() error { return w.release(a) })
			w.wants("a batch of releases", relaxed, 2, func() error {
				return w.apply(sqlstore.Change{From: b}, sqlstore.Change{From: c})
			})
			w.wants("a batch with a grant", "FULL", 2, func() error {
				return w.apply(sqlstore.Change{From: lease.Lease{Key: "a"}, To: to, TTL: time.Hour},
					sqlstore.Change{From: d})
			})
		})
	}
}

// A session is discarded if the setting cannot be taken back, or may have been made although it
// failed: a grant would not be durable on it.
func TestASessionThatMayStayRelaxedIsDiscarded(t *testing.T) {
	interrupt := withCode(sqlite3.SQLITE_INTERRUPT)
	for level, faults := range map[string][]faultdb.Fault{
		"FULL":   {faultdb.FailBeforeSend(), faultdb.FailBeforeSend().Reporting(interrupt)},
		"NORMAL": {faultdb.LoseReply(), faultdb.LoseReply().Reporting(interrupt)},
	} {
		for _, fault := range faults {
			w := watch(t, wal)
			l := w.acquire("k")
			w.broken, w.fault = level, fault
			err := w.release(l)
			if v := sqlstore.Judge(w.d, err); err == nil || v.Class.Good() {
				t.Errorf("%s failed: the release ended with %v, which is %s", level, err, v.Class)
			}
		}
	}
}

// The setting does not depend on the file's name, nor on other connections of the process that
// share a cache. The check leaves nothing attached.
func TestAReleaseIsRelaxedWhateverTheFileIsCalled(t *testing.T) {
	for _, name := range []string{"a b.db", "50%.db", "%20.db", "a?b.db", "a#b.db", "a&b=c.db", "ä.db", "'.db"} {
		path := filepath.Join(t.TempDir(), name)
		db, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		for _, other := range []string{"a connection", "one beside a shared cache"} {
			pinned, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := conn.NewSession(pinned)
			s.Relaxed = true
			if err := sqlstore.Of(sqlite.New()).Setup(t.Context(), s); err != nil || !s.Relaxed {
				t.Errorf("%s: %s: relaxed: %t, %v", name, other, s.Relaxed, err)
			}
			var files int
			err = pinned.QueryRowContext(t.Context(), `SELECT count(*) FROM pragma_database_list`).Scan(&files)
			if err != nil || files != 1 {
				t.Errorf("%s: %s: %d files are attached, %v", name, other, files, err)
			}
			s.Discard()
			shares(t, path)
		}
	}
}

// shares opens the file at path in a cache that connections of the process share.
func shares(t *testing.T, path string) {
	t.Helper()
	uri := "file:" + (&url.URL{Path: path}).EscapedPath() + "?cache=shared"
	db, err := sql.Open("sqlite", uri)
	if err == nil {
		t.Cleanup(func() { _ = db.Close() })
		err = db.Ping()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A file stays in WAL mode as long as a pinned connection has it open.
func TestAFileWithAPinnedConnectionKeepsItsJournal(t *testing.T) {
	w := watch(t, wal)
	w.ok(w.release(w.acquire("k")))
	var path, mode string
	w.ok(w.s.Conn().QueryRowContext(t.Context(), `SELECT file FROM pragma_database_list`).Scan(&path))
	other, err := sqlite.Open(path, "busy_timeout(1)")
	w.ok(err)
	defer func() { _ = other.Close() }()
	err = other.QueryRowContext(t.Context(), `PRAGMA journal_mode = DELETE`).Scan(&mode)
	if err == nil && mode != "wal" {
		t.Errorf("the journal is %s now", mode)
	}
}
