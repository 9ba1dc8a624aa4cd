package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
	sqlite3 "modernc.org/sqlite/lib"
)

// needed are the pragmas of a file that several connections or processes write to. busy_timeout
// comes first, because the change to WAL waits for the file's lock too.
var needed = []string{"busy_timeout(5000)", "journal_mode(WAL)"}

// dsn is the DSN that is right for the file at path, with pragmas of the user's, which go before
// those that are needed.
func dsn(path string, pragmas ...string) string {
	var settings strings.Builder
	for _, p := range needed {
		name, _, _ := strings.Cut(p, "(")
		if !slices.ContainsFunc(pragmas, func(own string) bool {
			return strings.HasPrefix(strings.ToLower(own), name+"(")
		}) {
			settings.WriteString("_pragma=" + p + "&")
		}
	}
	for _, p := range pragmas {
		settings.WriteString("_pragma=" + url.QueryEscape(p) + "&")
	}
	return location(path) + "?" + settings.String() + "_txlock=immediate"
}

// Open opens the SQLite file at path, and makes it if its folder is there. A file that Open makes
// is its owner's alone: let other users in with chmod, or make it before. The pool has the settings
// that writers of one file need:
//
//   - busy_timeout(5000): a writer waits up to 5 s for another. SQLite itself waits for none.
//   - immediate transactions: BeginTx waits for its turn to write. A deferred transaction that has
//     read fails with SQLITE_BUSY if another has written meanwhile, however long it may wait.
//     Transactions that are ReadOnly stay deferred and disturb no writer.
//   - journal_mode(WAL): readers and the writer work beside each other. The file keeps this.
//
// Each of pragmas is a setting of your own, as SQLite writes it: "foreign_keys(1)",
// "busy_timeout(10000)". It is made on every connection, instead of the one above of that name.
// Nothing else is changed: foreign keys are unchecked, as SQLite's default is.
//
// Open connects once, so that its error says what is wrong with path: lease.ErrConfig if the folder
// is missing (then fs.ErrNotExist too), if path is a folder or a DSN, or if a pragma is no pragma;
// lease.ErrPrivilege if the user may not open it; lease.ErrWrongDialect if the file is no
// database. Close the pool at the end, after its clients.
func Open(path string, pragmas ...string) (*sql.DB, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	for _, p := range pragmas {
		if !pragma.MatchString(p) {
			return nil, fmt.Errorf(`%w: sqlite.Open: %q is no pragma; write "foreign_keys(1)"`,
				lease.ErrConfig, p)
		}
	}
	private(path)
	db, err := sql.Open("sqlite", dsn(path, pragmas...))
	if err != nil {
		return nil, fmt.Errorf("rowlock: sqlite.Open(%q): %w", path, err)
	}
	// Of two that change the file to WAL at once one may be told that it is busy, and not wait as
	// busy_timeout says. A file that is locked for as long as that is not asked for once more.
	until := time.Now().Add(5 * time.Second)
	for err = db.Ping(); isBusy(err) && time.Now().Before(until); err = db.Ping() {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return nil, oneline.Join(opening(path, err), db.Close())
	}
	return db, nil
}

// private makes the file for its owner alone if it is missing: SQLite makes one that every user of
// the machine may read, and the files beside it have its rights. An error is what opening finds.
func private(path string) {
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
		_ = f.Close()
	}
}

// pragma is one setting and nothing behind it, because the driver would run that too.
var pragma = regexp.MustCompile(`^[A-Za-z_]+\([A-Za-z0-9_.+-]+\)$`)

func checkPath(path string) error {
	bad := func(why string) error {
		return fmt.Errorf("%w: sqlite.Open(%q): %s", lease.ErrConfig, path, why)
	}
	switch {
	case path == "", strings.HasPrefix(path, ":memory:"):
		return fmt.Errorf(
			"%w: sqlite.Open(%q): in memory every connection has a database of its own; give the "+
				"path of a file (in tests: filepath.Join(t.TempDir(), \"app.db\"))",
			lease.ErrNotDurable, path)
	case strings.HasPrefix(path, "file:"), strings.Contains(path, "?_"):
		return bad("give the path of the file alone; Open makes the DSN, and takes pragmas as " +
			"arguments: \"foreign_keys(1)\"")
	case strings.ContainsRune(path, 0):
		return bad("a path has no NUL")
	}
	return cmp.Or(checkName(path), folder(path))
}

// folder refuses a path whose folder is missing, and one that is a folder.
func folder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%w: sqlite.Open(%q): that is a folder; name a file in it",
			lease.ErrConfig, path)
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: sqlite.Open(%q): the folder %s is missing; create it "+
			"(os.MkdirAll), or correct the path: %w", lease.ErrConfig, path, dir, err)
	}
	return nil
}

// opening explains why the file at path cannot be opened, when its folder is there.
func opening(path string, err error) error {
	as := lease.ErrConfig
	switch {
	case isCode(err, sqlite3.SQLITE_CANTOPEN):
		as = lease.ErrPrivilege
	case isBusy(err):
		as = lease.ErrBusy
	default:
		as = cmp.Or(new(database).Classify(err).As, as)
	}
	return fmt.Errorf("%w: sqlite.Open(%q): %w", as, path, err)
}

// Locate returns the name of the file that the connection was opened with. Without it a temporary
// table of a session, which comes first, would stand for ours. It is asked before all else, and
// refuses a driver whose errors Classify does not know: a busy file would be an unknown outcome.
func (d *database) Locate(ctx context.Context, conn *sql.Conn, _ string) (string, error) {
	_, err := conn.ExecContext(ctx, `SELECT sqlite_version(0)`) // an argument too many
	if err != nil && !d.Native(err) && strings.Contains(err.Error(), "wrong number of arguments") {
		return "", fmt.Errorf("%w: the pool's driver has errors of %s, and rowlock knows those of "+
			"modernc.org/sqlite alone; open the file with sqlite.Open(path), or import _ "+
			"\"modernc.org/sqlite\" and use sql.Open(\"sqlite\", …): %w", lease.ErrConfig,
			reflect.Indirect(reflect.ValueOf(err)).Type().PkgPath(), err)
	}
	return "main", nil
}
