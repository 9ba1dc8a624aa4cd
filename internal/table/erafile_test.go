package table_test

import (
	"log/slog"
	"os"
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

// A SQLite file is copied back while no process has it open, over the old one or in its place.
// Nothing in it says so.
func TestTokensGrowThoughAFileWasCopiedBack(t *testing.T) {
	for name, back := range map[string]func(from, to string) error{
		"over the old": copyFile,
		"in its place": func(from, to string) error {
			next := to + ".next"
			if err := copyFile(from, next); err != nil {
				return err
			}
			return os.Rename(next, to)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			last := workOn(t, path, 3)
			backup := path + ".backup"
			if err := copyFile(path, backup); err != nil {
				t.Fatal(err)
			}
			last = max(last, workOn(t, path, 20))
			for range 2 { // the backup can be needed twice
				if err := back(backup, path); err != nil {
					t.Fatal(err)
				}
				next := workOn(t, path, 1)
				if next <= last {
					t.Errorf("token %d after %d", next, last)
				}
				last = next
			}
		})
	}
}

// A file that is copied back knows nothing of what a cluster has granted since. So a key moves
// there only when every epoch of its absence is below the era of an opening that follows.
func TestTokensGrowThoughAFileWasCopiedBackAfterAMove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	last := workOn(t, path, 3)
	backup := path + ".backup"
	if err := copyFile(path, backup); err != nil {
		t.Fatal(err)
	}
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
	if err := copyFile(backup, path); err != nil {
		t.Fatal(err)
	}
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
func workOn(t *testing.T, path string, n int) (last int64) {
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
	s, _, err = table.Open(t.Context(), db, sqlstore.Of(sqlite.New()), table.Options{Lanes: 1, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return s, func() { _, _ = s.Close(), db.Close() }
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	return err
}
