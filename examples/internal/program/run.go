package program

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// Run is one run of a program, with a temporary folder of its own in which nothing may be left.
type Run struct {
	*exec.Cmd
	Stderr bytes.Buffer
	temp   string
	out    io.Reader
}

// New returns a run that is not started yet. It is killed when the test ends, or after three
// minutes.
func New(tb testing.TB, path string, args ...string) *Run {
	tb.Helper()
	notice()
	ctx, cancel := context.WithTimeout(tb.Context(), 3*time.Minute)
	tb.Cleanup(cancel)
	r := &Run{Cmd: exec.CommandContext(ctx, path, args...), temp: tb.TempDir()}
	r.Cmd.Env = append(os.Environ(), "TMPDIR="+r.temp, "TMP="+r.temp)
	r.Cmd.Stderr = &r.Stderr
	return r
}

// LeavesNothing fails the test if there is anything in the temporary folder.
func (r *Run) LeavesNothing(tb testing.TB) {
	tb.Helper()
	if left, err := os.ReadDir(r.temp); err != nil || len(left) > 0 {
		tb.Errorf("left in the temporary folder: %v %v", left, err)
	}
}

// LeavesNoTables fails the test if there are any in a database that was Fresh.
func LeavesNoTables(tb testing.TB, name string) {
	tb.Helper()
	if !strings.Contains(name, "://") {
		if left, _ := filepath.Glob(name + "*"); len(left) > 0 {
			tb.Errorf("left: %v", left)
		}
		return
	}
	db, err := source.Open(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	ours := "database()"
	if db.Dialect.Name() == "postgres" {
		ours = "current_schema()"
	}
	var left []string
	if err := db.Select(&left, `SELECT table_name FROM information_schema.tables WHERE table_schema = `+ours); err != nil || len(left) > 0 {
		tb.Errorf("left: %v, %v", left, err)
	}
}

// Until starts the program and returns what it says up to and with text.
func (r *Run) Until(tb testing.TB, text string) string {
	tb.Helper()
	var err error
	if r.out, err = r.StdoutPipe(); err == nil {
		err = r.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	var seen bytes.Buffer
	for b := make([]byte, 1); !strings.HasSuffix(seen.String(), text); seen.Write(b) {
		if _, err := io.ReadFull(r.out, b); err != nil {
			tb.Fatalf("ended before it said %q: %v\n%s%s", text, err, seen.String(), r.Stderr.String())
		}
	}
	return seen.String()
}

// Rest waits for the end of a program that was started by Until, and returns what else it says.
func (r *Run) Rest() string {
	all, _ := io.ReadAll(r.out)
	_ = r.Wait()
	return string(all)
}

// InterruptAfter starts the program, interrupts it as Ctrl-C does when it has said text, and waits
// for its end.
func (r *Run) InterruptAfter(tb testing.TB, text string) {
	tb.Helper()
	r.Until(tb, text)
	if err := r.Process.Signal(os.Interrupt); err != nil {
		tb.Fatal(err)
	}
	r.Rest()
}
