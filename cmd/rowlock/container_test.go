//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// inContainer has cmd be process 1 of a container.
func inContainer(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	wrap := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	if err == nil {
		err = exec.Command(unshare, append(wrap, "true")...).Run()
	}
	if err != nil {
		t.Skipf("NOT TESTED as process 1 of a container: unshare: %v", err)
	}
	cmd.Path, cmd.Args = unshare, append(append([]string{"unshare"}, wrap...), cmd.Args...)
	return cmd
}

// leaving are commands that end and leave processes to a parent that asks for none of them.
var leaving = []struct {
	what, script string
	code         int
}{
	{"an orphan that ends before it", `(sleep 0.1 & echo $! > "$0"); sleep 0.3; exit 3`, 3},
	{"an orphan that has ended when it does", `(sleep 0 & echo $! > "$0"); sleep 0.3; exit 0`, 0},
	{"grandchildren that go on", `(sh -c 'sleep 60 & sleep 61' & echo $! > "$0"); exit 4`, 4},
	{"a grandchild that ignores SIGTERM", `(trap "" TERM; sleep 60 & echo $! > "$0"); exit 0`, 0},
	{"a daemon in a session of its own", `setsid sh -c 'echo $$ > "$0"; sleep 1' "$0" & sleep 0.3; exit 5`, 5},
}

func TestRunEndsWithItsCommandWhereNobodyAsksForZombies(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for i, l := range leaving {
		for _, where := range []string{"process 1", "below a process 1 that waits for its own only"} {
			t.Run(l.what+", "+where, func(t *testing.T) {
				args := []string{"run", strconv.Itoa(i), "--grace", "300ms", "--", "sh", "-c", l.script}
				cmd := b.command(append(args, filepath.Join(t.TempDir(), "pid"))...)
				if where != "process 1" {
					cmd.Path = "/bin/sh"
					cmd.Args = append([]string{"sh", "-c", `"$0" "$@"; exit $?`, binary}, cmd.Args[1:]...)
				}
				if _, said, code := finish(t, inContainer(t, cmd)); code != l.code {
					t.Errorf("run exits with %d, want %d: %s", code, l.code, said)
				}
				b.wants(0, "", "run", strconv.Itoa(i), "--wait", "0", "--", "true") // the key is free
			})
		}
	}
}

// hoarder starts a process of the command's group, leaves the group itself, and never asks for it.
const hoarder = `
import os, sys, time
if os.fork() == 0:
    if os.fork() == 0:
        os._exit(0)
    os.setpgid(0, 0); os.close(1); os.close(2)
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(60)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
os._exit(6)
`

func TestAZombieOfADaemonKeepsNoKey(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT TESTED: a daemon that asks for no child, without python3")
	}
	b := newBed(t, testdb.Kinds[0].Open(t))
	file := filepath.Join(t.TempDir(), "pid")
	_, said, code := b.does("run", "k", "--", python, "-c", hoarder, file)
	if code != 6 {
		t.Errorf("run exits with %d, want 6: %s", code, said)
	}
	text, _ := os.ReadFile(file)
	pid, err := strconv.Atoi(string(text))
	if err != nil || !isAlive(pid) {
		t.Errorf("the daemon %q has ended, and so its zombie has (%v)", text, err)
		return
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// A process 1 gets the orphans of what others start in its container, as a health check is.
func TestProcessOneAsksForOrphansOfOthers(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	// The orphan's parent is no child of the warden's: nsenter comes from outside.
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("NOT TESTED: orphans of others, without nsenter")
	}
	cmd := inContainer(t, b.command("run", "k", "--", "cat"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	var one int
	eventually(t, "the process 1", func() bool {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		_, err := fmt.Sscan(string(children), &one)
		return err == nil
	})
	eventually(t, "the command", func() bool {
		out, _ := exec.Command("nsenter", "-t", strconv.Itoa(one), "-p", "-m", "ps", "-eo", "args").Output()
		return strings.Contains(string(out), "\ncat\n")
	})
	out, err := exec.Command("nsenter", "-t", strconv.Itoa(one), "-p", "-m", "sh", "-c", `(sleep 0 &)`).CombinedOutput()
	if err != nil {
		t.Skipf("NOT TESTED: orphans of others: nsenter: %v: %s", err, out)
	}
	eventually(t, "no zombies", func() bool {
		out, _ := exec.Command("nsenter", "-t", strconv.Itoa(one), "-p", "-m", "ps", "-eo", "stat,args").Output()
		return len(out) > 0 && !strings.Contains(string(out), "Z ")
	})
}

// shielded runs the program in a shell that ignores signals, as nohup and background jobs have it.
func (b *bed) shielded(shell string, args ...string) *exec.Cmd {
	cmd := b.command(args...)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", shell + ` exec "$0" "$@"`, binary}, args...)
	return cmd
}

func TestASignalThatIsIgnoredStaysIgnored(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for _, c := range []struct {
		shell string
		sent  []syscall.Signal
		ends  syscall.Signal // one that is not ignored
	}{
		{`trap "" HUP;`, []syscall.Signal{syscall.SIGHUP}, syscall.SIGTERM},
		{`trap "" INT QUIT;`, []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}, syscall.SIGHUP},
		{`trap "" HUP INT QUIT;`, []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}, syscall.SIGTERM},
	} {
		t.Run(c.shell, func(t *testing.T) {
			if signal.Ignored(c.ends) {
				t.Skipf("NOT TESTED: the tests themselves run with %s ignored, as below nohup", c.ends)
			}
			file := filepath.Join(t.TempDir(), "ready")
			// The command reports what it ignores itself, and then waits for its end.
			cmd := b.shielded(c.shell, "run", "k", "--", "sh", "-c",
				`grep SigIgn /proc/self/status > "$0.new"; mv "$0.new" "$0"; read line`, file)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			mask := ignoredBy(t, file)
			for _, s := range c.sent {
				if mask&(1<<(s-1)) == 0 {
					t.Errorf("the command does not ignore %s", s)
				}
				_ = cmd.Process.Signal(s)
			}
			_ = cmd.Process.Signal(c.ends)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 128+int(c.ends) {
				t.Errorf("run exits with %d, want %d: by %s alone", code, 128+int(c.ends), c.ends)
			}
		})
	}
}

func ignoredBy(t *testing.T, file string) uint64 {
	t.Helper()
	var text []byte
	eventually(t, "the command", func() (there bool) {
		var err error
		text, err = os.ReadFile(file)
		return err == nil
	})
	mask, err := strconv.ParseUint(strings.Fields(string(text))[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

// A run that waits ends by each signal that the command would get from a terminal or from a system
// that stops: it leaves no ticket, writes its report and exits with the signal's code.
func TestASignalEndsAWait(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	v := b.victim("k")
	defer kill(v, v.child, syscall.SIGKILL)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(s.String(), func(t *testing.T) {
			if signal.Ignored(s) {
				t.Skipf("NOT TESTED: the tests themselves run with %s ignored, as below nohup", s)
			}
			file := filepath.Join(t.TempDir(), "report")
			waits := b.command("run", "k", "--fair", "--ttl", "1h", "--report", file, "--", "true")
			said, err := waits.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := waits.Start(); err != nil {
				t.Fatal(err)
			}
			_, _ = said.Read(make([]byte, 1)) // waiting for k
			_ = waits.Process.Signal(s)
			_, _ = io.Copy(io.Discard, said)
			_ = waits.Wait()
			if code := waits.ProcessState.ExitCode(); code != 128+int(s) {
				t.Errorf("run exits with %d, want %d", code, 128+int(s))
			}
			if text, err := os.ReadFile(file); !strings.Contains(string(text), fmt.Sprintf(`"exit_code":%d`, 128+int(s))) {
				t.Errorf("the report is %q, %v", text, err)
			}
			var tickets int
			if err := b.DB.QueryRow(b.SQL("SELECT count(*) FROM {rowlock_queue}")).Scan(&tickets); err != nil || tickets > 0 {
				t.Errorf("%d tickets are left, %v", tickets, err)
			}
		})
	}
}

// A signal that is ignored does not end the wait for a key either.
func TestAnIgnoredSignalEndsNoWait(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	v := b.victim("k")
	waits := b.shielded(`trap "" INT;`, "run", "k", "--", "true")
	said, err := waits.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = said.Read(make([]byte, 1)) // waiting for k
	_ = waits.Process.Signal(syscall.SIGINT)
	kill(v, v.child, syscall.SIGKILL)
	_, _ = io.Copy(io.Discard, said)
	_ = waits.Wait()
	if code := waits.ProcessState.ExitCode(); code != 0 {
		t.Errorf("run exits with %d, want 0", code)
	}
}

// systemd sends SIGTERM to every process of a unit, and SIGKILL to those that are left.
func TestAStopOfTheWholeGroupGivesTheCodeAndTheKey(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for name, script := range map[string]string{
		"ends by the signal":       `echo $$ $PPID > "$0.new"; mv "$0.new" "$0"; sleep 60 & wait`,
		"has a handler of its own": `trap 'exit 7' TERM; echo $$ $PPID > "$0.new"; mv "$0.new" "$0"; while :; do sleep 0.1; done`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			cmd := b.command("run", "k", "--", "sh", "-c", script, file)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var child, warden int
			eventually(t, "the command", func() bool {
				text, err := os.ReadFile(file)
				if err == nil {
					_, err = fmt.Sscan(string(text), &child, &warden)
				}
				return err == nil
			})
			for range 2 { // an operator who is in a hurry stops it again
				for _, pid := range []int{cmd.Process.Pid, warden, child} {
					_ = syscall.Kill(pid, syscall.SIGTERM)
				}
			}
			_ = cmd.Wait()
			want := map[string]int{"ends by the signal": 128 + 15, "has a handler of its own": 7}[name]
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("run exits with %d, want %d", code, want)
			}
			b.wants(0, "", "run", "k", "--wait", "0", "--", "true") // the key is free
		})
	}
}

func TestRunWithClosedFilesRunsItsCommand(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for _, closed := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
		cmd := b.command()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `"$0" run k -- sh -c 'read line; exit 8' ` + closed, binary}
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 8 {
			t.Errorf("run %s: %v, want exit code 8", closed, err)
		}
	}
}

// fgShell is a shell with job control that has a job read in the background, and then brings it to
// the foreground.
const fgShell = `set -m; "$0" run k -- sh -c 'read line; echo got $line; exit 9' & ` +
	`while ! read go; do :; done; fg; echo code $?`

func TestACommandOfTheBackgroundReadsWhenItIsInTheForeground(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("NOT TESTED: jobs in the background, without bash")
	}
	b := newBed(t, testdb.Kinds[0].Open(t))
	cmd := b.command()
	cmd.Path, cmd.Args = bash, []string{"bash", "-c", fgShell, binary}
	s := b.screen(100, 24, cmd)
	s.shows("waits for the terminal")
	s.types("go\n")
	s.shows("run k")
	s.types("hello\n")
	s.shows("got hello")
	s.shows("code 9")
	_, _ = s.ends()
}

func TestTheCommandGetsNoPassword(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	print := []string{"--", "sh", "-c", `echo "dsn=$ROWLOCK_DSN key=$ROWLOCK_KEY"; tr '\0' '\n' < /proc/$PPID/environ`}
	out := b.wants(0, "", append([]string{"run", "k"}, print...)...)
	if strings.Contains(out, "ROWLOCK_DSN") || !strings.Contains(out, "dsn= key=k\n") {
		t.Errorf("the command or its parent has the DSN: %s", out)
	}
	out = b.wants(0, "", append([]string{"run", "k", "--keep-dsn"}, print...)...)
	if !strings.Contains(out, "dsn="+b.dsn+" key=k\n") {
		t.Errorf("with --keep-dsn the command has no DSN: %s", out)
	}
}

// A terminal that is closed sends SIGHUP: to a run whose command has ended as well.
func TestASignalDoesNotEndARunThatUnlocks(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("NOT TESTED: the tests themselves run with SIGHUP ignored, as below nohup")
	}
	file := filepath.Join(t.TempDir(), "pid")
	cmd := b.command("run", "k", "--", "sh", "-c", `echo $PPID > "$0.new"; mv "$0.new" "$0"; read line`, file)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var warden int
	eventually(t, "the command", func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = fmt.Sscan(string(text), &warden)
		}
		return err == nil
	})
	tx, err := b.DB.BeginTx(t.Context(), nil) // has the file, which the release waits for
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	eventually(t, "the warden to end", func() bool { return syscall.Kill(warden, 0) != nil })
	for range 20 {
		_ = cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(10 * time.Millisecond)
	}
	_ = tx.Rollback()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 { // that of read without a line
		t.Errorf("run exits with %d, want 1: %s", code, cmd.ProcessState)
	}
	b.wants(0, "", "run", "k", "--wait", "0", "--", "true") // the key is free
}
