package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/internal/wire"
)

// scripted begins a file of what the command line prints for programs.
func scripted(about string) *wire.File {
	return wire.New(about, "scripts that read it", "JSON of the command line")
}

// Scripts read what -o json prints, and --report. The tokens are of an era of today, so that no
// double holds them.
func TestJSONIsAsReleased(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.ForgetEras(t)
	c, err := rowlock.Open(b.Pool(t), b.Dialect, &rowlock.Config{
		Identity: "web-1/4711/orders", Trace: rowlock.TraceConfig{On: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.takes(c.Lock, "held", "other")
	b.takes(c.RLock, "shared")
	stop := b.waiter("held")
	f := scripted("What the command line prints with -o json, and --report.")
	var covered []string
	prints := func(args []string, varies ...string) {
		t.Helper()
		covered = append(covered, args[0])
		out, said, code := b.does(append(args, "-o", "json")...)
		if code != 0 {
			t.Errorf("rowlock %q exits with %d: %s", args, code, said)
		}
		f.JSON(t, strings.Join(args, " "), out, varies...)
	}
	prints([]string{"ls", "-n", "1"})
	prints([]string{"ls", "-n", "0"})
	prints([]string{"show", "held"})
	prints([]string{"waiters"})
	prints([]string{"waiters", "held"})
	f.JSON(t, "watch held", b.firstLine("watch", "held", "-o", "json"))
	f.JSON(t, "run held --report", b.reported("held", "--wait", "0"))
	stop()
	prints([]string{"release", "other", "--force", "--reason", "stuck", "--by", "ada"}, "database_user")
	if err := c.Close(); err != nil { // which writes the trace
		t.Fatal(err)
	}
	prints([]string{"history", "other"}, "seconds")
	f.JSON(t, "run free --report", b.reported("free"))
	f.JSON(t, "fence", b.wants(0, "", "run", "free", "--", binary, "fence", "-o", "json"), "statements")
	prints([]string{"migrate", "status"})
	prints([]string{"version"}, "version", "go")
	prints([]string{"doctor", "--only", "schema"}, "server", "summary", "value", "from")
	prints([]string{"bench", "--for", "100ms"}, "pairs_per_second", "of_raw", "p50_ms", "p99_ms")
	f.Match(t, "../../testdata/wire/cli.txt")
	b.wantsAllOf(append(covered, "watch", "fence", "move", "recall"))
}

// Scripts go by exit codes. Those that need a fault of the server have tests of their own.
func TestExitCodesAreAsReleased(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.holds("held")
	f := wire.New("Exit codes of the command line.", "scripts that go by them", "exit codes")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"done", []string{"ls"}},
		{"show: no such key", []string{"show", "never"}},
		{"release: the key is free", []string{"release", "never", "--force", "--reason", "x"}},
		{"wrong usage", []string{"ls", "-o", "yaml"}},
		{"the database does not answer", []string{"ls", "--dsn", "postgres://127.0.0.1:1/x"}},
		{"no tables", []string{"ls", "--prefix", "missing_"}},
		{"doctor: critical", []string{"doctor", "--only", "schema", "--prefix", "missing_"}},
		{"run: that of the command", []string{"run", "free", "--", "sh", "-c", "exit 7"}},
		{"run: a signal has ended the command", []string{"run", "free", "--", "sh", "-c", "kill -9 $$"}},
		{"run: held", []string{"run", "held", "--wait", "0", "--", "true"}},
		{"run: held, with --skip-if-held", []string{"run", "held", "--skip-if-held", "--", "true"}},
		{"run: --max-hold is over", []string{"run", "free", "--max-hold", "300ms", "--grace", "50ms", "--", "sleep", "60"}},
		{"run: wrong usage", []string{"run", "free", "true"}},
		{"run: the command cannot be run", []string{"run", "free", "--", "/etc/passwd"}},
		{"run: no such program", []string{"run", "free", "--", "no-such-program"}},
	} {
		_, _, code := b.does(c.args...)
		f.Add(c.name, "%d", code)
	}
	f.Match(t, "../../testdata/wire/exits.txt")
}

// takes has keys held until the test ends.
func (b *bed) takes(
	lock func(context.Context, string, ...rowlock.Option) (*rowlock.Lock, error), keys ...string,
) {
	b.Helper()
	for _, key := range keys {
		l, err := lock(b.Context(), key, rowlock.Note("nightly import"))
		if err != nil {
			b.Fatal(err)
		}
		if l.Token() < 1<<53 {
			b.Fatalf("token %d is of no era of today", l.Token())
		}
		b.Cleanup(func() { runtime.KeepAlive(l) }) // a forgotten lock is released
	}
}

// waiter has a process wait for a key until stop is called.
func (b *bed) waiter(key string) (stop func()) {
	b.Helper()
	waiting := b.command("run", key, "--fair", "--note", "me too", "--identity", "web-2", "--", "true")
	if err := waiting.Start(); err != nil {
		b.Fatal(err)
	}
	eventually(b.T, "the waiter", func() bool {
		out, _, _ := b.does("waiters", key)
		return strings.Contains(out, "me too")
	})
	return func() { _ = waiting.Process.Kill(); _ = waiting.Wait() }
}

// firstLine is the first that a command prints, which goes on.
func (b *bed) firstLine(args ...string) string {
	b.Helper()
	cmd := b.command(args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return line
}

// reported is what run writes with --report.
func (b *bed) reported(key string, flags ...string) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "report")
	_, _, _ = b.does(slices.Concat([]string{"run", key, "--report", file}, flags, []string{"--", "true"})...)
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// wantsAllOf fails the test if a command that takes -o is none of these.
func (b *bed) wantsAllOf(covered []string) {
	b.Helper()
	for line := range strings.Lines(b.completed()) {
		name, _, is := strings.Cut(line, "\t")
		if out, _, _ := b.does(name, "--help"); is && strings.Contains(out, "--output") && !slices.Contains(covered, name) {
			b.Errorf("what `rowlock %s -o json` prints is in no file of testdata/wire", name)
		}
	}
}

// completed are the commands, one a line, as a shell asks for them.
func (b *bed) completed() string {
	out, _, _ := b.does("__complete", "")
	if !strings.Contains(out, "version\t") {
		b.Errorf("the commands are %q", out)
	}
	return out
}
