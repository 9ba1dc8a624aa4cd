package main

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/program"
)

// binary is the program: it starts itself, so the test's own binary would not do.
var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// showing is one run of it.
type showing struct{ *program.Run }

func newShowing(t *testing.T) *showing {
	t.Helper()
	return &showing{program.New(t, binary, "-short")}
}

var pids = regexp.MustCompile(`etcd in processes (\d+), (\d+), (\d+)\n`)

// leavesNothing wants the members gone, and their folders.
func (p *showing) leavesNothing(t *testing.T, out string) {
	t.Helper()
	p.endsMembers(t, out)
	p.LeavesNothing(t)
}

func (p *showing) endsMembers(t *testing.T, out string) {
	t.Helper()
	found := pids.FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("the members' processes are not named:\n%s", out)
	}
	for _, text := range found[1:] {
		pid, _ := strconv.Atoi(text)
		for began := time.Now(); isRunning(pid); time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Errorf("process %d, a member of etcd, is still there", pid)
				break
			}
		}
	}
}

func isRunning(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil || runtime.GOOS == "windows" {
		return false
	}
	defer func() { _ = p.Release() }()
	return p.Signal(syscall.Signal(0)) == nil
}

func TestHotKeysGoAndComeHomeAndNothingIsLost(t *testing.T) {
	t.Parallel()
	p := newShowing(t)
	raw, err := p.Output()
	out := string(raw)
	t.Logf("%s", out)
	if err != nil || p.Stderr.Len() > 0 {
		t.Fatalf("%v\n%s", err, p.Stderr.String())
	}
	rest := out
	for _, want := range []string{
		`statements/s \| locks/s: .*\(database\)`, `hot: \d+ a second; epoch 1`, `statements/s \| locks/s: .*\(cluster\)`,
		`m[123], which leads, is killed with -9 \(process \d+\)`, `the load ends`, `comes home to the database \(cool: \d+ a second; epoch 2\)`,
		`all in the database +\d+`, `✓ nothing was lost`,
	} {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("the output lacks %q, or has it too early", want)
		}
		rest = rest[at[1]:]
	}
	for _, key := range hotKeys {
		for _, want := range []string{key + " moves to the cluster", key + " comes home to the database"} {
			if !strings.Contains(out, want) {
				t.Errorf("the output lacks %q", want)
			}
		}
	}
	if strings.Contains(out, "user/") {
		t.Error("a cold key has moved")
	}
	sum := regexp.MustCompile(`add up to (\d+), and the workers have counted (\d+)`).FindStringSubmatch(out)
	if sum == nil || sum[1] != sum[2] || sum[1] == "0" {
		t.Errorf("the total: %q", sum)
	}
	p.leavesNothing(t, out)
}

// Ctrl-C in a terminal reaches the members too, which must not leave by themselves. kill -9 reaches
// only the program.
func TestInterruptedItLeavesNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("this system has no signals to interrupt a process with")
	}
	t.Run("while keys are hot", func(t *testing.T) {
		t.Parallel()
		p := newShowing(t)
		p.SysProcAttr = ownGroup()
		out := p.Until(t, "moves to the cluster")
		if err := interruptGroup(p.Process.Pid); err != nil {
			t.Fatal(err)
		}
		out += p.Rest()
		if p.ProcessState.ExitCode() != 130 || p.Stderr.String() != "hotkey: interrupted\n" {
			t.Errorf("exit status %d, said %q", p.ProcessState.ExitCode(), p.Stderr.String())
		}
		p.leavesNothing(t, out)
	})
	t.Run("killed itself", func(t *testing.T) {
		t.Parallel()
		p := newShowing(t)
		out := p.Until(t, "two clients lock")
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.endsMembers(t, out+p.Rest())
	})
}

func TestABrokenPromiseIsAnError(t *testing.T) {
	t.Parallel()
	fill := func() *load {
		l := newLoad(1)
		for key, a := range l.accounts {
			a.value.Store(5)
			l.counted[key] = 5
		}
		return l
	}
	if _, err := fill().check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(l *load){
		"one overwrote another":        func(l *load) { l.counted["likes"]++ },
		"and the sum is right by luck": func(l *load) { l.counted["likes"]++; l.counted["tickets"]-- },
		"a token fell":                 func(l *load) { l.fell = append(l.fell, "likes: 3 after 4") },
	} {
		l := fill()
		spoil(l)
		if _, err := l.check(); err == nil || !strings.HasPrefix(err.Error(), "PROMISE BROKEN") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := newLoad(1).check(); err == nil {
		t.Error("a show in which nothing was locked passes")
	}
}
