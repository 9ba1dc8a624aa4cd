package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// binary is the program, built as users have it: static, and without the race detector, which would
// make each start take a second.
var binary string

func TestMain(m *testing.M) {
	for _, name := range []string{
		"ROWLOCK_DSN", "ROWLOCK_PREFIX", "ROWLOCK_SCHEMA", "ROWLOCK_KEY", "NO_COLOR", "COLUMNS",
	} {
		_ = os.Unsetenv(name)
	}
	if os.Getenv("ROWLOCK_CHILD") != "" { // of a test, which has the program
		os.Exit(m.Run())
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rowlock-test")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "rowlock")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, out))
	}
	defer endChromium()
	return m.Run()
}

// bed is a database and the program's way to it.
type bed struct {
	*testing.T
	*testdb.Env
	dsn string
}

// each runs f on every kind of database.
func each(t *testing.T, f func(b *bed)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(newBed(t, e)) })
}

func newBed(t *testing.T, e *testdb.Env) *bed {
	t.Helper()
	return &bed{t, e, dsnOf(t, e)}
}

// dsnOf is a test's DSN as the program takes it.
func dsnOf(t *testing.T, e *testdb.Env) string {
	t.Helper()
	switch e.Driver {
	case "pgx":
		return e.Source
	case "mysql":
		cfg, err := mysqldriver.ParseDSN(e.Source)
		if err != nil {
			t.Fatal(err)
		}
		u := url.URL{Scheme: "mysql", User: url.User(cfg.User), Host: cfg.Addr, Path: "/" + cfg.DBName}
		return u.String()
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(e.Source, "file:"), "?")
	path, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

// command returns the program with arguments, ready to start.
func (b *bed) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "ROWLOCK_DSN="+b.dsn,
		"ROWLOCK_PREFIX="+b.Dialect.Names().Prefix, "TERM=xterm-256color")
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// does runs the program and returns what it prints and its exit code.
func (b *bed) does(args ...string) (out, said string, code int) {
	b.Helper()
	return finish(b.T, b.command(args...))
}

func finish(t *testing.T, cmd *exec.Cmd) (out, said string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// wants fails the test unless the program ends with a code and says one line, or none for "".
func (b *bed) wants(code int, says string, args ...string) string {
	b.Helper()
	out, said, got := b.does(args...)
	if got != code {
		b.Errorf("rowlock %q exits with %d, want %d: %s%s", args, got, code, out, said)
	}
	lines := strings.Count(said, "\n")
	if says == "" && said != "" || says != "" && (lines != 1 || !strings.HasPrefix(said, "rowlock: ")) ||
		!strings.Contains(said, says) {
		b.Errorf("rowlock %q says %q, want %q in one line", args, said, says)
	}
	return out
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}
