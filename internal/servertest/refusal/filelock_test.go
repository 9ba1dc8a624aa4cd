package refusal

import (
	"database/sql"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/schema"
)

// settings are those that a pool needs beside the one that a test is about.
const settings = "_pragma=busy_timeout(5000)&_txlock=immediate"

// migrated returns the path of a file with rowlock's tables.
func migrated(s *servertest.Scene) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "app.db")
	db, err := sqlite.Open(path)
	s.OK(err)
	defer db.Close()
	s.OK(schema.Migrate(s.Context(), db, sqlite.New()))
	run(s, db, `PRAGMA journal_mode = DELETE`) // WAL cannot do without locks
	return path
}

func run(s *servertest.Scene, db *sql.DB, statement string) {
	s.Helper()
	_, err := db.ExecContext(s.Context(), statement)
	s.OK(err)
}

// The usual advice for NFS, SMB and Azure Files turns SQLite's locks off. Two processes are then
// granted the same token.
func TestOpenRefusesAFileWithoutLocks(t *testing.T) {
	s := &servertest.Scene{T: t}
	path := migrated(s)
	for _, option := range []string{"nolock=1", "vfs=unix-none", "vfs=unix-none&nolock=1"} {
		for _, idle := range []int{0, 1, 2} {
			db := s.Dial("sqlite", "file:"+path+"?"+option+"&"+settings)
			db.SetMaxIdleConns(idle)
			refused(s, db, sqlite.New(), rowlock.ErrConfig, "no file locks", path, "nolock")
		}
	}
}

// A file that is busy all the time is taken all the same, however it is opened.
func TestOpenTakesAFileWithLocks(t *testing.T) {
	s := &servertest.Scene{T: t}
	path := migrated(s)
	busy := s.Dial("sqlite", "file:"+path+"?"+settings)
	run(s, busy, `PRAGMA journal_mode = WAL`) // in which readers need not wait for a writer
	run(s, busy, `CREATE TABLE busy (n)`)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = busy.Exec(`INSERT INTO busy VALUES (1)`)
			}
		}
	}()
	for _, option := range []string{"", "cache=shared", "vfs=unix", "psow=0"} {
		db := s.Dial("sqlite", "file:"+path+"?"+option+"&"+settings)
		c, err := rowlock.Open(db, sqlite.New(), nil)
		if err != nil {
			t.Errorf("%s: %v", option, err)
			continue
		}
		s.OK(c.Close())
	}
	close(stop)
	<-ended
}

// A connection that keeps the file for itself has every statement of the application fail.
func TestOpenRefusesExclusiveLocking(t *testing.T) {
	s := &servertest.Scene{T: t}
	path := migrated(s)
	for _, mode := range []string{"DELETE", "WAL"} {
		db := s.Dial("sqlite", "file:"+path+"?_pragma=busy_timeout(100)&_pragma=locking_mode(EXCLUSIVE)"+
			"&_pragma=journal_mode("+mode+")&_txlock=immediate")
		refused(s, db, sqlite.New(), rowlock.ErrConfig, "locking_mode")
		s.OK(db.Close())
	}
}

// Options that became part of a file's name are no options, and the file is another one than that
// of programs with another spelling.
func TestOpenRefusesOptionsInTheNameOfAFile(t *testing.T) {
	s := &servertest.Scene{T: t}
	for _, name := range []string{
		"app.db?_pragma=busy_timeout(5000)", "app.db?mode=rw", "app.db&_txlock=immediate", "app.db?cache=shared&x",
		"app.db&mode=rwc",
	} {
		path := filepath.Join(t.TempDir(), name)
		if _, err := sqlite.Open(path); !errors.Is(err, rowlock.ErrConfig) {
			t.Errorf("sqlite.Open(%q): %v", name, err)
		}
		db := s.Dial("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+settings)
		run(s, db, `CREATE TABLE mine (n)`)
		refused(s, db, sqlite.New(), rowlock.ErrConfig, "part of the file's name")
	}
}

// Programs that open a file by two names have a log for each, and locks of its own in it.
func TestOpenRefusesAFileWithSeveralNames(t *testing.T) {
	s := &servertest.Scene{T: t}
	path := migrated(s)
	other := filepath.Join(t.TempDir(), "other.db")
	if err := os.Link(path, other); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{path, other} {
		if _, err := sqlite.Open(name); !errors.Is(err, rowlock.ErrConfig) {
			t.Errorf("sqlite.Open(%q): %v", name, err)
		}
		refused(s, s.Dial("sqlite", "file:"+name+"?"+settings), sqlite.New(), rowlock.ErrConfig, "hard links", name)
	}
	s.OK(os.Remove(other))
	s.OK(os.Symlink(path, other))
	db, err := sqlite.Open(other)
	s.OK(err)
	defer db.Close()
	c, err := rowlock.Open(db, sqlite.New(), nil)
	s.OK(err)
	s.OK(c.Close())
}

// mounted names the files of a child whose mounts are its own.
const mounted = "ROWLOCK_TEST_MOUNTED"

// A file that is mounted without its folder has a log in each container, and else one.
func TestOpenRefusesAFileThatIsMountedAlone(t *testing.T) {
	s := &servertest.Scene{T: t}
	if place := os.Getenv(mounted); place != "" {
		alone, whole := filepath.Join(place, "alone is.db"), filepath.Join(place, "folder", "app.db")
		if _, err := sqlite.Open(alone); !errors.Is(err, rowlock.ErrConfig) || !strings.Contains(err.Error(), "mount its folder") {
			t.Errorf("sqlite.Open(%q): %v", alone, err)
		}
		refused(s, s.Dial("sqlite", "file:"+alone+"?"+settings), sqlite.New(), rowlock.ErrConfig, "mounted alone", alone)
		db, err := sqlite.Open(whole)
		s.OK(err)
		s.OK(db.Close())
		return
	}
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		t.Skip("SKIPPED, NOT TESTED: no mounts of its own: ", err)
	}
	path, place := migrated(s), t.TempDir()
	s.OK(os.WriteFile(filepath.Join(place, "alone is.db"), nil, 0o600))
	s.OK(os.Mkdir(filepath.Join(place, "folder"), 0o700))
	child := exec.Command("unshare", "--mount", "sh", "-c", `mount --bind "$1" "$2/alone is.db" &&
		mount --bind "$(dirname "$1")" "$2/folder" && exec "$3" -test.run "$4"`, "sh",
		path, place, os.Args[0], "^"+t.Name()+"$")
	child.Env = append(os.Environ(), mounted+"="+place)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
