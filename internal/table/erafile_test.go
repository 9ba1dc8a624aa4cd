package table_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/schema"
)

// fileWays are the ways in which a SQLite file is backed up and restored while no process has it
// open. Nothing in the file says so afterwards.
var fileWays = map[string]struct {
	backup, restore func(t *testing.T, path, backup string)
}{
	"copied over the old": {copied, func(t *testing.T, path, backup string) { copied(t, backup, path) }},
	"copied in its place": {copied, inItsPlace},
	"VACUUM INTO": {func(t *testing.T, path, backup string) {
		inFile(t, path, `VACUUM INTO '`+backup+`'`)
	}, inItsPlace},
	"rows, after DELETE": {copied, func(t *testing.T, path, backup string) {
		inFile(t, path, `ATTACH '`+backup+`' AS kept`,
			`DELETE FROM rowlock`, `INSERT INTO rowlock SELECT * FROM kept.rowlock`,
			`DELETE FROM rowlock_floor`, `INSERT INTO rowlock_floor SELECT * FROM kept.rowlock_floor`,
			`DELETE FROM rowlock_meta`, `INSERT INTO rowlock_meta SELECT * FROM kept.rowlock_meta`)
	}},
	".backup and .restore": {func(t *testing.T, path, backup string) {
		sqlite3(t, path, ".backup "+backup)
	}, func(t *testing.T, path, backup string) { sqlite3(t, path, ".restore "+backup) }},
	".dump and .read": {func(t *testing.T, path, backup string) {
		sqlite3(t, path, ".output "+backup, ".dump")
	}, func(t *testing.T, path, backup string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		sqlite3(t, path, ".read "+backup)
	}},
}

func TestTokensGrowThoughAFileWasCopiedBack(t *testing.T) {
	for name, way := range fileWays {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			last := workOn(t, path, 3)
			backup := path + ".backup"
			way.backup(t, path, backup)
			last = max(last, workOn(t, path, 20))
			for range 2 { // the backup can be needed twice
				way.restore(t, path, backup)
				next := workOn(t, path, 1)
				if next <= last {
					t.Errorf("token %d after %d", next, last)
				}
				last = next
			}
		})
	}
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func inItsPlace(t *testing.T, path, backup string) {
	t.Helper()
	copied(t, backup, path+".next")
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

// inFile executes statements in one session.
func inFile(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// sqlite3 has SQLite's program execute commands.
func sqlite3(t *testing.T, path string, commands ...string) {
	t.Helper()
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("SKIPPED, NOT RESTORED BY SQLITE'S PROGRAM: ", err)
	}
	out, err := exec.Command(program, append([]string{"-bail", path}, commands...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
}

// A file that is copied back knows nothing of what a cluster has granted since. So a key moves
// there only when every epoch of its absence is below the era of an opening that follows.
func TestTokensGrowThoughAFileWasCopiedBackAfterAMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	last := workOn(t, path, 3)
	backup := path + ".backup"
	copied(t, path, backup)
	s, done := openFile(t, path)
	b, err := paxosbridge.New(t.Context(), s, memcluster.New(), &paxosbridge.Config{
		Every: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	wantIs(t, b.MoveOut(t.Context(), "k", "test"), lease.ErrBusy)
	got, err := b.Acquire(t.Context(), requests("k"))
	if err != nil || !got[0].Granted {
		t.Fatalf("%+v, %v", got, err)
	}
	last = max(last, got[0].Token)
	_ = b.Close()
	done()
	copied(t, backup, path)
	if next := workOn(t, path, 1); next <= last {
		t.Errorf("token %d after %d", next, last)
	}
}

// A program that has kept a file open for long enough moves its keys.
func TestAKeyOfAFileMovesWhenItsEpochsAreOver(t *testing.T) {
	for age, want := range map[time.Duration]error{10 * time.Minute: lease.ErrBusy, 40 * time.Minute: nil} {
		e := testdb.Kinds[0].Open(t)
		openOn(t, e, e.Dialect, false) // the next opening in this process is in the same era
		e.Exec(t, `UPDATE {rowlock_meta} SET start = ? WHERE name LIKE 'era/%'`, era.Start(time.Now().Add(-age)))
		s := openOn(t, e, e.Dialect, false)
		_, ok, err := s.Depart(t.Context(), hold(t, s, "k"), 1)
		if wantIs(t, err, want); ok != (want == nil) {
			t.Errorf("%s after the file was opened the key has departed: %t", age, ok)
		}
	}
}

// workOn opens a file, grants a key n times, closes it and returns the last token.
func workOn(t *testing.T, path string, n int) (last lease.Token) {
	t.Helper()
	s, done := openFile(t, path)
	defer done()
	for range n {
		l := hold(t, s, "k")
		release(t, s, l)
		last = l.Token
	}
	return last
}

func openFile(t *testing.T, path string) (s *table.Store, done func()) {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Migrate(t.Context(), db, sqlite.New()); err != nil {
		t.Fatal(err)
	}
	s, _, err = table.Open(t.Context(), db, sqlstore.Of(sqlite.New()), table.Options{Connections: 1, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() { _, _ = s.Close(), db.Close() }
}
