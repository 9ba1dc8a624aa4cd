//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// victim is a run of the program with a command that ignores SIGTERM.
type victim struct {
	b                       *bed
	key                     string
	keeper                  *exec.Cmd
	keeperID, warden, child int
}

// stubborn writes its process id and its parent's to a file, and does not end at SIGTERM.
const stubborn = `trap "" TERM; echo $$ $PPID > "$0.new"; mv "$0.new" "$0"; while :; do sleep 1; done`

const victimTTL = 3 * time.Second

func (b *bed) victim(key string, flags ...string) *victim {
	b.Helper()
	file := filepath.Join(b.TempDir(), "pid")
	args := append([]string{"run", key, "--ttl", victimTTL.String(), "--grace", "300ms"}, flags...)
	v := &victim{b: b, key: key, keeper: b.command(append(args, "--", "sh", "-c", stubborn, file)...)}
	v.keeper.Stderr = os.Stderr
	if !testing.Verbose() {
		v.keeper.Stderr = nil
	}
	if err := v.keeper.Start(); err != nil {
		b.Fatal(err)
	}
	v.keeperID = v.keeper.Process.Pid
	b.Cleanup(func() {
		_ = v.keeper.Process.Signal(syscall.SIGCONT)
		_ = v.keeper.Process.Kill()
		_ = v.keeper.Wait()
	})
	eventually(b.T, "the command to start", func() bool {
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = fmt.Sscan(string(text), &v.child, &v.warden)
		}
		return err == nil
	})
	return v
}

// isAlive reports whether a process runs: a zombie does not.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// lease is how long the key is locked by the database's clock; negative: no longer.
func (v *victim) lease() (left time.Duration, owned bool) {
	v.b.Helper()
	query := map[string]string{
		"pgx":    `SELECT (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint, owner IS NOT NULL FROM {rowlock} WHERE key = ?`,
		"mysql":  `SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), owner IS NOT NULL FROM {rowlock} WHERE {key} = ?`,
		"sqlite": `SELECT (expires_at - {now}) * 1000, owner IS NOT NULL FROM {rowlock} WHERE key = ?`,
	}[v.b.Driver]
	var micros int64
	row := v.b.DB.QueryRowContext(v.b.Context(), v.b.SQL(query), []byte(v.key))
	if err := row.Scan(&micros, &owned); err != nil {
		v.b.Fatal(err)
	}
	return time.Duration(micros) * time.Microsecond, owned
}

// diesInTime fails the test unless the command ends while no other owner can have the key. How the
// lease stands is asked before each look at the command: asked afterwards, the lease of a command
// that died in time may have ended meanwhile.
func (v *victim) diesInTime(after string) {
	v.b.Helper()
	began := time.Now()
	var left time.Duration
	eventually(v.b.T, "the command to end", func() bool {
		var owned bool
		left, owned = v.lease()
		alive := isAlive(v.child)
		if alive && owned && left <= 0 {
			v.b.Fatalf("%s: the command lives %s after it, and %s after the lease", after, time.Since(began), -left)
		}
		return !alive
	})
	v.b.Logf("%s: dead after %s, with %s of the lease left", after, time.Since(began), left)
}

// ways are the ways to end or stop a process of a run.
var ways = []struct {
	name string
	do   func(v *victim)
}{
	{"the keeper killed", func(v *victim) { kill(v, v.keeperID, syscall.SIGKILL) }},
	{"the warden killed", func(v *victim) { kill(v, v.warden, syscall.SIGKILL) }},
	{"the command killed", func(v *victim) { kill(v, v.child, syscall.SIGKILL) }},
	{"the keeper stopped", func(v *victim) { kill(v, v.keeperID, syscall.SIGSTOP) }},
	{"keeper and warden killed", func(v *victim) {
		kill(v, v.keeperID, syscall.SIGKILL)
		kill(v, v.warden, syscall.SIGKILL)
	}},
	{"the warden stopped, the keeper told to end", func(v *victim) {
		kill(v, v.warden, syscall.SIGSTOP)
		v.b.Exec(v.b.T, `UPDATE {rowlock} SET token = token + 1 WHERE {key} = ?`, []byte(v.key))
	}},
}

func kill(v *victim, pid int, s syscall.Signal) {
	v.b.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		v.b.Errorf("kill %d: %v", pid, err)
	}
}

// kills is how many runs are attacked, over all databases.
func kills(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ROWLOCK_KILLS"))
	if err != nil {
		return 20
	}
	return n
}

func TestACommandNeverOutlivesItsLease(t *testing.T) {
	each(t, func(b *bed) {
		slots := make(chan struct{}, 4)
		for n := range max(len(ways), kills(t)/len(testdb.Kinds)) {
			b.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				way := ways[n%len(ways)]
				v := (&bed{t, b.Env, b.dsn}).victim(fmt.Sprintf("key %d", n))
				time.Sleep(rand.N(victimTTL / 2)) // before, in and after a renewal
				way.do(v)
				v.diesInTime(way.name)
			})
		}
	})
}

func TestTheCommandThatIsKilledGivesItsCodeAndTheKey(t *testing.T) {
	each(t, func(b *bed) {
		v := b.victim("k")
		kill(v, v.child, syscall.SIGKILL)
		_ = v.keeper.Wait()
		if code := v.keeper.ProcessState.ExitCode(); code != 128+9 {
			b.Errorf("run exits with %d, want 137", code)
		}
		if _, owned := v.lease(); owned {
			b.Error("the key is not released")
		}
	})
}

func TestALostLeaseEndsTheCommandWithACodeOfItsOwn(t *testing.T) {
	each(t, func(b *bed) {
		report := filepath.Join(b.TempDir(), "report")
		v := b.victim("k", "--report", report)
		b.Exec(b.T, `UPDATE {rowlock} SET token = token + 1 WHERE {key} = ?`, []byte("k"))
		v.diesInTime("the lease taken away")
		_ = v.keeper.Wait()
		if code := v.keeper.ProcessState.ExitCode(); code != 121 {
			b.Errorf("run exits with %d, want 121", code)
		}
		text, err := os.ReadFile(report)
		if err != nil || !strings.Contains(string(text), `"outcome":"lost"`) {
			b.Errorf("the report is %s (%v), want the outcome lost", text, err)
		}
	})
}

// A command that is stopped, and its group: SIGCONT goes with SIGTERM, and SIGKILL follows.
func TestProcessesOfTheGroupEndToo(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	file := filepath.Join(t.TempDir(), "pid")
	script := fmt.Sprintf("sleep 60 & echo $! > %s; exit 3", file)
	_, said, code := b.does("run", "k", "--", "sh", "-c", script)
	if code != 3 || !strings.Contains(said, "left processes behind") {
		t.Errorf("run exits with %d and says %q, want 3 and that there were processes left", code, said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if pid, _ := strconv.Atoi(strings.TrimSpace(string(text))); pid == 0 || isAlive(pid) {
		t.Errorf("process %d is alive, and the key is free", pid)
	}
}
