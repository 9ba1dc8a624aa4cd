package main

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

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// binary is the program: it starts itself, so the test's own binary would not do.
var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// run is one run of it, with a temporary folder of its own in which nothing may be left.
type run struct {
	*exec.Cmd
	temp   string
	stderr bytes.Buffer
}

func newRun(t *testing.T, args ...string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	p := &run{Cmd: exec.CommandContext(ctx, binary, args...), temp: t.TempDir()}
	p.Cmd.Env = append(os.Environ(), "TMPDIR="+p.temp, "TMP="+p.temp)
	p.Cmd.Stderr = &p.stderr
	return p
}

func (p *run) leavesNothing(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(p.temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v %v", left, err)
	}
}

func TestQuickstart(t *testing.T) {
	t.Parallel()
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			tellsItsStory(t, newRun(t, "-db", program.Source(t, k)))
		})
	}
	t.Run("a SQLite file of the user's", func(t *testing.T) {
		t.Parallel()
		db := filepath.Join(t.TempDir(), "my app?100%.db")
		tellsItsStory(t, newRun(t, "-db", db, "-processes", "2", "-count", "20"))
		if _, err := os.Stat(db); !os.IsNotExist(err) {
			t.Errorf("%s was not there before and is now: %v", db, err)
		}
	})
}

func tellsItsStory(t *testing.T, p *run) {
	t.Helper()
	out, err := p.Output()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	want := []string{"without a lock", "were overwritten", "with the lock", "✓ one holder at a time: expected", "All promises kept."}
	if canStop {
		want = append(want, "SIGSTOP", "✗ expected 160, got 110: B's 50 are gone", "✓ a loss is never silent", "writes 110: refused", "rowlock: fenced:",
			"✓ an older token may not write", "✓ tokens only grow", "✓ no lease is given away early", "✓ no update is lost: expected 160, got 160")
	}
	for _, w := range want {
		if !strings.Contains(string(out), w) {
			t.Errorf("the output lacks %q", w)
		}
	}
	if p.stderr.Len() > 0 {
		t.Errorf("standard error: %s", p.stderr.String())
	}
	p.leavesNothing(t)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	if !canStop {
		t.Skip("this system has no signals to interrupt a process with")
	}
	for name, until := range map[string]string{"while they count": "without a lock", "while one is stopped": "SIGSTOP)\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newRun(t)
			stdout, err := p.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			readUntil(t, stdout, until)
			if err := p.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, stdout)
			_ = p.Wait()
			if p.ProcessState.ExitCode() != 130 || p.stderr.String() != "quickstart: interrupted\n" {
				t.Errorf("exit status %d, said %q", p.ProcessState.ExitCode(), p.stderr.String())
			}
			p.leavesNothing(t)
		})
	}
}

func readUntil(t *testing.T, r io.Reader, text string) {
	t.Helper()
	var seen bytes.Buffer
	for b := make([]byte, 1); !strings.HasSuffix(seen.String(), text); seen.Write(b) {
		if _, err := r.Read(b); err != nil {
			t.Fatalf("ended before it said %q: %v\n%s", text, err, seen.String())
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for db, want := range map[string]string{
		"postgres://me:secret@127.0.0.1:1/x": "connect to postgres://…@127.0.0.1:1/x",
		"mysql://me:secret@127.0.0.1:1/x":    "connect to mysql://…@127.0.0.1:1/x",
		"redis://localhost":                  "use postgres://, mysql:// or the name of a SQLite file",
		"no/such/folder/x.db":                "unable to open database file",
	} {
		p := newRun(t, "-db", db)
		_, err := p.Output()
		said := p.stderr.String()
		if err == nil || p.ProcessState.ExitCode() != 1 || !strings.Contains(said, want) || strings.Contains(said, "secret") {
			t.Errorf("-db %s: %v, said %q, want %q", db, err, said, want)
		}
	}
}

func TestBrokenPromise(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &story{w: &out}
	s.check(false, "tokens only grow", "3, 2")
	err := s.end(time.Second)
	if err == nil || err.Error() != "promise broken: tokens only grow: 3, 2" || !strings.Contains(out.String(), "PROMISE BROKEN: tokens only grow: 3, 2") {
		t.Errorf("%v, %s", err, out.String())
	}
	if growing([]int64{1, 3, 3}) || growing([]int64{2, 1}) || !growing([]int64{1, 2, 7}) {
		t.Error("growing")
	}
}
