package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// locks proves that the connection takes file locks, without which processes that write at the same
// time are granted the same token. No list of settings says so: nolock=1, a vfs of the program's
// own and a file system all can take them away. So a second handle on the file takes the write
// lock, and the connection's own must be refused.
func locks(ctx context.Context, conn *sql.Conn, path string) (_ []string, err error) {
	if err := shares(ctx, conn, path); err != nil {
		return nil, err
	}
	abandon(ctx, conn)
	back, err := impatient(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer func() { err = oneline.Join(err, back()) }()
	if err := untilFree(ctx, func() error { return attach(ctx, conn, path) }); err != nil {
		return nil, err
	}
	defer func() {
		_, end := conn.ExecContext(context.WithoutCancel(ctx), `DETACH rowlock_twin`)
		err = oneline.Join(err, end)
	}()
	return nil, untilFree(ctx, func() error { return excludes(ctx, conn, path) })
}

// attach opens the file a second time, with a cache of its own also if connections share one.
func attach(ctx context.Context, conn *sql.Conn, path string) error {
	_, err := conn.ExecContext(ctx, `ATTACH ? AS rowlock_twin`, location(path)+"?cache=private")
	if isBusy(err) {
		return fmt.Errorf("%w: %s: %w", lease.ErrBusy, path, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %s cannot be opened a second time, to see whether its locks work: %w",
			lease.ErrConfig, path, err)
	}
	return nil
}

// untilFree does f again while another connection has the file.
func untilFree(ctx context.Context, f func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := f()
		if !isBusy(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// shares refuses a connection that keeps the file's locks after its transactions: the application's
// own connections, and other processes, would be refused as long as a client is open.
func shares(ctx context.Context, conn *sql.Conn, path string) error {
	var mode string
	err := conn.QueryRowContext(ctx, `PRAGMA main.locking_mode`).Scan(&mode)
	if err == nil && mode != "normal" {
		err = fmt.Errorf("%w: %s is open with locking_mode %s, by which one connection keeps the file for "+
			"itself; leave that pragma out", lease.ErrConfig, path, mode)
	}
	return err
}

// excludes writes through both handles in one transaction, which it rolls back. It is busy if
// another connection had the lock first and has released it in between.
func excludes(ctx context.Context, conn *sql.Conn, path string) error {
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return err
	}
	_, first := conn.ExecContext(ctx, `PRAGMA rowlock_twin.user_version = 1`)
	_, second := conn.ExecContext(ctx, `PRAGMA main.user_version = 1`)
	abandon(context.WithoutCancel(ctx), conn)
	switch {
	case isBusy(second):
		return nil
	case second != nil:
		return second
	case first == nil:
		return fmt.Errorf("%w: %s is open with no file locks: two connections had its write lock at "+
			"once, so that processes can hold one key at once; leave out nolock and vfs, and keep the file on "+
			"a disk of this host (the locks of NFS, SMB and Azure Files do not work)", lease.ErrConfig, path)
	}
	return first
}

// query matches what should have been options of a DSN, in the name of a file.
var query = regexp.MustCompile(`\?[^?]*=|&(_\w+|mode|cache|vfs|nolock|immutable|psow)=`)

// checkName refuses a file whose name has the options of a DSN in it: the settings are not made,
// and programs that write the DSN in another way lock in another file. It refuses one that has
// other names: SQLite's log, and in it the locks, is in files beside the name by which each program
// opens it, so that programs that open it by two names are granted the same keys. So are those that
// have the file, and not its folder, mounted.
func checkName(path string) error {
	if query.MatchString(path) { // options may have a / in them
		file, _, _ := strings.Cut(path, "?")
		return fmt.Errorf("%w: the options are part of the file's name, which is %q: use sqlite.Open(%q), or "+
			"write the DSN file:PATH?OPTIONS, with ? and & as they are", lease.ErrConfig, path, file)
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil // Open makes the one, and refuses the other
	}
	file, err := filepath.EvalSymlinks(path)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // Linux has it, in which a blank is \040
	if err == nil && strings.Contains(strings.ReplaceAll(string(mounts), `\040`, " "), " "+file+" ") {
		return fmt.Errorf("%w: %s is mounted alone, as into a container, and its log and locks are beside the "+
			"mount, where other containers and the host do not see them: they would be granted the same keys "+
			"and damage the file; mount its folder", lease.ErrConfig, path)
	}
	links := reflect.Indirect(reflect.ValueOf(info.Sys())).FieldByName("Nlink") // Windows has none
	if links.IsValid() && links.Convert(reflect.TypeFor[uint64]()).Uint() > 1 {
		return fmt.Errorf("%w: %s has other names too (hard links), by which programs would be granted the "+
			"same keys and damage the file: keep one, and copy the file instead of linking it",
			lease.ErrConfig, path)
	}
	return nil
}
