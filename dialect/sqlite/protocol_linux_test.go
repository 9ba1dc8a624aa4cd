package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	driving "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite gives up a file in WAL mode when it has found no snapshot in a hundred tries, ten seconds
// in all, whatever busy_timeout is. Nothing was read then, and nothing written.
// https://www.sqlite.org/rescode.html#protocol
func TestAFileOfWhichNoSnapshotIsToBeHadIsAConflict(t *testing.T) {
	t.Parallel()
	f := newFile(t)
	path := filepath.Join(t.TempDir(), "protocol.db")
	writeAndClose(t, path)
	lockSharedMemory(t, path)

	err := f.run(f.open(path, "_pragma=busy_timeout(0)"), `INSERT INTO t VALUES (1)`)
	var e *driving.Error
	if !errors.As(err, &e) || e.Code() != sqlite3.SQLITE_PROTOCOL {
		t.Fatalf("the file's shared memory is locked: %v, want SQLITE_PROTOCOL", err)
	}
	wantVerdict(t, f.Dialect, err, sqlstore.Conflict, nil)
}

// writeAndClose leaves a file in WAL mode that no connection of this process has open: one that had
// would share its memory with the next.
func writeAndClose(t testing.TB, path string) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.ExecContext(t.Context(), `CREATE TABLE t (n)`)
	if err := errors.Join(err, pool.Close()); err != nil {
		t.Fatal(err)
	}
}

// lockSharedMemory has what a process has that is about to set up the file's shared memory, and
// never does: the byte after its eight locks. https://www.sqlite.org/walformat.html
func lockSharedMemory(t testing.TB, path string) {
	t.Helper()
	const (
		offsetDeadManSwitch = 128
		setOpenFileLock     = 37 // F_OFD_SETLK: unlike F_SETLK's, this process's own do not pass it
	)
	shared, err := os.OpenFile(path+"-shm", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Close() })
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: offsetDeadManSwitch, Len: 1}
	if err := syscall.FcntlFlock(shared.Fd(), setOpenFileLock, &lock); err != nil {
		t.Fatal(err)
	}
}
