// Package standby starts a PostgreSQL and its synchronous standby, for tests of what is told while
// the standby hangs and of what a failover to it forgets.
package standby

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/rowlockdb/rowlock/internal/ports"
)

// patience bounds what must come to an end.
const patience = 60 * time.Second

// Pair is a primary, every commit of which waits for its standby.
type Pair struct {
	DB      *sql.DB // on the primary, for the test's own questions
	Source  string  // the primary's DSN
	primary *server
	standby *server
	test    testing.TB // the pair ends with it
}

// Start starts both, and stops them with the test. Where there is no PostgreSQL of the suite's own
// the test is skipped aloud, or fails if ROWLOCK_TEST_REQUIRE names the standby.
func Start(tb testing.TB) *Pair {
	tb.Helper()
	return start(tb, "sync", "-c", "synchronous_standby_names=*", "-c", "synchronous_commit=on")
}

// StartAsynchronous is Start, and no commit waits for the standby.
func StartAsynchronous(tb testing.TB) *Pair {
	tb.Helper()
	return start(tb, "async")
}

func start(tb testing.TB, state string, settings ...string) *Pair {
	tb.Helper()
	programs := find(tb)
	folder := scratch(tb)
	addresses, err := ports.Free(2)
	if err != nil {
		tb.Fatal(err)
	}
	first := &server{programs: programs, data: filepath.Join(folder, "primary"), address: addresses[0]}
	second := &server{programs: programs, data: filepath.Join(folder, "standby"), address: addresses[1]}
	first.run(tb, "initdb", "--pgdata="+first.data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions")
	first.start(tb, settings...)
	p := &Pair{DB: first.open(tb), Source: first.dsn(), primary: first, standby: second, test: tb}
	first.run(tb, "pg_basebackup", "--pgdata="+second.data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--dbname="+first.dsn())
	second.start(tb)
	p.until(tb, "the standby is "+state, func() bool {
		return p.count(tb, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = '`+state+`'`) == 1
	})
	return p
}

func find(tb testing.TB) (programs string) {
	tb.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if path, err := exec.LookPath("pg_basebackup"); len(found) == 0 && err == nil {
		found = append(found, path)
	}
	required := slices.Contains(strings.Split(os.Getenv("ROWLOCK_TEST_REQUIRE"), ","), "standby")
	switch {
	case len(found) > 0 && (required || os.Getenv("ROWLOCK_TEST_POSTGRES") != ""):
		return filepath.Dir(found[len(found)-1])
	case required:
		tb.Fatal("a standby is required by ROWLOCK_TEST_REQUIRE, and no PostgreSQL server is installed")
	}
	tb.Skip("SKIPPED, NOT TESTED WITH A SYNCHRONOUS STANDBY: install PostgreSQL, and run make test")
	return ""
}

func scratch(tb testing.TB) string {
	tb.Helper()
	folder, err := os.MkdirTemp("", "rowlock-standby-") // tb.TempDir's parent is not for other users
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(folder) })
	if c := identity(tb); c != nil {
		if err := os.Chown(folder, int(c.Uid), int(c.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	return folder
}

// StandbySource is the standby's DSN.
func (p *Pair) StandbySource() string { return p.standby.dsn() }

// StopStandby ends the standby.
func (p *Pair) StopStandby(tb testing.TB) { tb.Helper(); p.standby.kill(tb) }

// Hang stops every process of the standby: what the primary sends it stays unread.
func (p *Pair) Hang(tb testing.TB) { tb.Helper(); p.standby.signal(tb, syscall.SIGSTOP) }

// Wake has the standby go on.
func (p *Pair) Wake(tb testing.TB) { tb.Helper(); p.standby.signal(tb, syscall.SIGCONT) }

// AwaitCommits returns when n commits wait for the standby.
func (p *Pair) AwaitCommits(tb testing.TB, n int) {
	tb.Helper()
	p.until(tb, fmt.Sprintf("%d commits wait for the standby", n), func() bool {
		return p.count(tb, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`) >= n
	})
}

// CutWaits ends the sessions whose commits wait. Their clients hear nothing, and what they have
// committed becomes visible.
func (p *Pair) CutWaits(tb testing.TB) {
	tb.Helper()
	p.count(tb, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
}

// FailOver kills both and promotes the standby, with what it had on its disk. It returns the new
// primary's DSN.
func (p *Pair) FailOver(tb testing.TB) (source string) {
	tb.Helper()
	p.primary.kill(tb)
	p.standby.kill(tb)
	p.standby.start(tb)
	p.standby.promote(tb)
	return p.standby.dsn()
}

// Promote kills the primary and promotes the standby while it runs: a commit was acknowledged only
// when the standby had it. It returns when the standby takes writes.
func (p *Pair) Promote(tb testing.TB) {
	tb.Helper()
	p.primary.kill(tb)
	p.standby.promote(tb)
}

// Archive gives the promoted standby a synchronous standby of its own, by the name of
// pg_receivewal. Its commits wait for that from then on, also those of clients that close as a part
// of the test ends: so it ends with the pair.
func (p *Pair) Archive(tb testing.TB) {
	tb.Helper()
	folder := filepath.Join(filepath.Dir(p.standby.data), "archive")
	archive := &process{cmd: p.standby.command(tb, "pg_receivewal", "--synchronous", "--no-loop",
		"--directory="+folder, "--dbname="+p.standby.dsn())}
	if err := os.Mkdir(folder, 0o777); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		tb.Fatal(err)
	}
	archive.launch(tb)
	p.test.Cleanup(func() { archive.kill(p.test) })
	db := p.standby.open(tb)
	for _, q := range []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`} {
		if _, err := db.ExecContext(tb.Context(), q); err != nil {
			tb.Fatal(err)
		}
	}
}

func (p *Pair) count(tb testing.TB, query string) (n int) {
	tb.Helper()
	if err := p.DB.QueryRowContext(tb.Context(), query).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

func (p *Pair) until(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	until(tb, what, so)
}

func until(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	for began := time.Now(); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			tb.Fatalf("it did not come about that %s", what)
		}
	}
}

// answers reports whether the server takes connections.
func (s *server) answers(ctx context.Context, db *sql.DB) bool {
	c, err := net.DialTimeout("tcp", s.address, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return db.PingContext(ctx) == nil
}
