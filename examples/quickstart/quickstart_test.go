package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// binary is the program: it starts itself, so the test's own binary would not do.
var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

func TestQuickstart(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	t.Cleanup(func() {
		if lost.Load() == 0 && !t.Failed() {
			t.Error("without a lock nothing was overwritten in any run")
		}
	})
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			tellsItsStory(t, program.New(t, binary, "-db", program.Source(t, k)), &lost)
		})
	}
	t.Run("a SQLite file of the user's", func(t *testing.T) {
		t.Parallel()
		db := filepath.Join(t.TempDir(), "my app?100%.db")
		tellsItsStory(t, program.New(t, binary, "-db", db, "-processes", "2", "-count", "20"), &lost)
		if _, err := os.Stat(db); !os.IsNotExist(err) {
			t.Errorf("%s was not there before and is now: %v", db, err)
		}
	})
}

// tellsItsStory counts the runs in which processes without a lock have overwritten each other: on a
// machine with other work one may be done before the next gets a turn.
func tellsItsStory(t *testing.T, p *program.Run, lost *atomic.Int64) {
	t.Helper()
	out, err := p.Output()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.Stderr.String())
	}
	if strings.Contains(string(out), "were overwritten") {
		lost.Add(1)
	} else if !strings.Contains(string(out), "none lost this time, by luck") {
		t.Error("the output does not say what was lost without a lock")
	}
	want := []string{"without a lock", "with the lock", "✓ one holder at a time: expected", "All promises kept."}
	if canStop {
		want = append(want, "SIGSTOP", "✗ expected 160, got 110: B's 50 are gone", "✓ a loss is never silent", "writes 110: refused", "fenced: ",
			"✓ an older token may not write", "✓ tokens only grow", "✓ no lease is given away early", "✓ no update is lost: expected 160, got 160")
	}
	for _, w := range want {
		if !strings.Contains(string(out), w) {
			t.Errorf("the output lacks %q", w)
		}
	}
	if p.Stderr.Len() > 0 {
		t.Errorf("standard error: %s", p.Stderr.String())
	}
	p.LeavesNothing(t)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	if !canStop {
		t.Skip("this system has no signals to interrupt a process with")
	}
	for name, until := range map[string]string{"while they count": "without a lock", "while one is stopped": "SIGSTOP)\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program.New(t, binary)
			p.InterruptAfter(t, until)
			if p.ProcessState.ExitCode() != 130 || p.Stderr.String() != "quickstart: interrupted\n" {
				t.Errorf("exit status %d, said %q", p.ProcessState.ExitCode(), p.Stderr.String())
			}
			p.LeavesNothing(t)
		})
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	for db, want := range map[string]string{
		"postgres://me:secret@127.0.0.1:1/x": "connect to postgres://…@127.0.0.1:1/x",
		"mysql://me:secret@127.0.0.1:1/x":    "connect to mysql://…@127.0.0.1:1/x",
		"redis://localhost":                  "use postgres://, mysql:// or the name of a SQLite file",
		"no/such/folder/x.db":                "the folder no/such/folder is missing",
	} {
		p := program.New(t, binary, "-db", db)
		_, err := p.Output()
		said := p.Stderr.String()
		if err == nil || p.ProcessState.ExitCode() != 1 || !strings.Contains(said, want) || strings.Contains(said, "secret") {
			t.Errorf("-db %s: %v, said %q, want %q", db, err, said, want)
		}
	}
}

func TestKeepWantsADatabaseThatStays(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "app.db")
	for _, args := range [][]string{{"-keep"}, {"-keep", "-count", "2", "-db", db}} {
		p := program.New(t, binary, args...)
		if out, err := p.Output(); (err == nil) != (len(args) > 1) || strings.Contains(string(out), "kept: the tables quickstart_") != (err == nil) {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if _, err := os.Stat(db); err != nil {
		t.Error(err)
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
	if growing([]lease.Token{1, 3, 3}) || growing([]lease.Token{2, 1}) || !growing([]lease.Token{1, 2, 7}) {
		t.Error("growing")
	}
}
