package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/lease"
)

// The name of a file may have what means something else in a DSN.
func TestOpenTakesAnyPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{
		"app.db", "./app.db", "a b.db", "50%.db", "%20.db", "a?b.db", "a#b.db", "a&b=c.db", "a:b.db", "ä.db",
		"'.db", "a+b.db", filepath.Join(t.TempDir(), "abs.db"),
	} {
		db, err := sqlite.Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := db.Exec(`CREATE TABLE x (n)`); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		db.Close()
		if _, err := os.Stat(name); err != nil {
			t.Errorf("the file is not at %s: %v", name, err)
		}
		os.Remove(name)
	}
}

// A pool makes connections at any time, and a program may change its folder meanwhile.
func TestAPoolStaysWithItsFile(t *testing.T) {
	t.Chdir(t.TempDir())
	db, err := sqlite.Open("app.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE x (n)`); err != nil {
		t.Fatal(err)
	}
	first, err := db.Conn(t.Context()) // so that the next is another
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	t.Chdir(t.TempDir())
	if _, err := db.Exec(`INSERT INTO x VALUES (1)`); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("app.db"); err == nil {
		t.Error("a later connection has made another file")
	}
}

func TestOpenSetsWhatWritersNeed(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string]string{"journal_mode": "wal", "busy_timeout": "5000", "foreign_keys": "0"}
	wantSettings(t, db, want)

	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	other, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), `PRAGMA busy_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := other.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err == nil {
		t.Error("a transaction begins without the write lock")
	}
	reader, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal("a reader waits for the writer:", err)
	}
	reader.Rollback()
}

// wantSettings looks at two connections, because a pool has several.
func wantSettings(t *testing.T, db *sql.DB, want map[string]string) {
	t.Helper()
	for range 2 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for name, value := range want {
			var got string
			err := conn.QueryRowContext(context.Background(), `PRAGMA `+name).Scan(&got)
			if err != nil || got != value {
				t.Errorf("%s is %q, want %q (%v)", name, got, value, err)
			}
		}
	}
}

func TestOpenTakesPragmasOfTheUsers(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "app.db"),
		"foreign_keys(1)", "busy_timeout(777)", "cache_size(-4000)", "journal_mode(delete)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	wantSettings(t, db, map[string]string{
		"foreign_keys": "1", "busy_timeout": "777", "cache_size": "-4000", "journal_mode": "delete",
	})
}

func TestOpenRefusesWhatIsNoPragma(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	for _, p := range []string{
		"", "foreign_keys", "foreign_keys=1", "foreign_keys(1);DROP TABLE x", "foreign_keys(1)\n",
		"_txlock=deferred", "a(1)&_txlock=deferred",
	} {
		db, err := sqlite.Open(file, p)
		wantRefused(t, db, err, lease.ErrConfig, "no pragma", "foreign_keys(1)")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was made")
	}
}

func wantRefused(t *testing.T, db *sql.DB, err, want error, says ...string) {
	t.Helper()
	if db != nil {
		t.Error("a pool came with the error")
	}
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

func TestOpenSaysThatAFolderIsMissing(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "absent", "deep")
	db, err := sqlite.Open(filepath.Join(missing, "app.db"))
	wantRefused(t, db, err, lease.ErrConfig, "the folder "+missing+" is missing", "MkdirAll")
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, lease.ErrPrivilege) {
		t.Errorf("got %v", err)
	}
	db, err = sqlite.Open(dir)
	wantRefused(t, db, err, lease.ErrConfig, "is a folder")
}

func TestOpenRefusesWhatIsNoPath(t *testing.T) {
	for _, path := range []string{"", ":memory:"} {
		db, err := sqlite.Open(path)
		wantRefused(t, db, err, lease.ErrNotDurable, "in memory", "file")
	}
	for _, path := range []string{"file:app.db", "app.db?_pragma=x(1)", "a\x00b"} {
		db, err := sqlite.Open(path)
		wantRefused(t, db, err, lease.ErrConfig, "path")
	}
}

func TestOpenSaysThatAFileIsNoDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte(strings.Repeat("This is no database. ", 99)), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(file)
	wantRefused(t, db, err, lease.ErrWrongDialect, "not a database", file)
}

// Processes that start together all change the file to WAL.
func TestManyOpenAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			db, err := sqlite.Open(file)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := db.Exec(`CREATE TABLE IF NOT EXISTS x (n)`); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// SQLite's own default lets every user of the machine read what is stored.
func TestAFileThatOpenMakesIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such rights")
	}
	path := filepath.Join(t.TempDir(), "app.db")
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE x (n)`); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the rights %v (%v), want 0600", name, info.Mode(), err)
		}
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	again, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
		t.Errorf("Open has changed the rights of a file to %v", info.Mode())
	}
}
