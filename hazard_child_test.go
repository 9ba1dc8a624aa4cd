package rowlock_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// child is another process: this very program, doing one job on the scene's tables. It is told what to do line by line, and
// says what it has done.
type child struct {
	s   *scene
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// job is what a child does. Its scene has no test behind it that could fail: what goes wrong, it says.
type job func(c *colleague) error

var jobs = map[string]job{"hold": holding, "write": writing, "count": counting, "crowd": crowding, "queue": queueing}

// childPoll is the PollMax of every child.
const childPoll = 50 * time.Millisecond

// colleague is the child's own view.
type colleague struct {
	db    *sql.DB
	locks *rowlock.Client
	sql   func(string) string
	table string
	lines *bufio.Scanner
}

func (s *scene) child(job, table string, ttl time.Duration) *child {
	s.Helper()
	return s.childIn(mode{}, job, table, ttl)
}

// childIn is a child whose client waits in a mode.
func (s *scene) childIn(m mode, job, table string, ttl time.Duration) *child {
	s.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildAtWork$")
	cmd.Env = append(os.Environ(), "ROWLOCK_CHILD="+strings.Join([]string{job, s.env.Name, s.env.Dialect.Names().Prefix, table, ttl.String(), s.env.Source, m.String()}, "\n"))
	in, err := cmd.StdinPipe()
	s.ok(err)
	out, err := cmd.StdoutPipe()
	s.ok(err)
	cmd.Stderr = os.Stderr
	s.ok(cmd.Start())
	c := &child{s, cmd, in, bufio.NewScanner(out)}
	s.Cleanup(c.kill)
	return c
}

// say has the child do something.
func (c *child) say(line string) {
	c.s.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.s.Errorf("the child is gone: %v", err)
	}
}

// hear returns the next thing the child says.
func (c *child) hear() string {
	for c.out.Scan() {
		if said, ok := strings.CutPrefix(c.out.Text(), "child: "); ok {
			return said
		}
	}
	return "(nothing more)"
}

func (c *child) expect(what string) {
	c.s.Helper()
	if said := c.hear(); said != what {
		c.s.Errorf("the child said %q, want %q", said, what)
	}
}

// pause stops the process as a virtual machine or a debugger does, and returns when it stands.
func (c *child) pause() {
	c.s.Helper()
	c.s.ok(c.cmd.Process.Signal(syscall.SIGSTOP))
	c.s.eventually("the process to stand", func() bool {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "T")
	})
}

func (c *child) goOn() { c.s.ok(c.cmd.Process.Signal(syscall.SIGCONT)) }

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// done lets a child end by itself.
func (c *child) done() {
	c.s.Helper()
	_ = c.in.Close()
	c.expect("done")
	c.s.ok(c.cmd.Wait())
}

// TestChildAtWork is the child.
func TestChildAtWork(t *testing.T) {
	what := strings.Split(os.Getenv("ROWLOCK_CHILD"), "\n")
	if len(what) != 7 {
		t.Skip("only for a child process")
	}
	k := kindNamed(what[1])
	ttl, _ := time.ParseDuration(what[4])
	db, err := sql.Open(k.Driver, what[5])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := k.New(dialect.Prefix(what[2]))
	locks, err := rowlock.Open(db, d, sceneConfig(withTTL(ttl), withPoll(childPoll), modeNamed(what[6]).set))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	env := &testdb.Env{Kind: k, Dialect: d}
	c := &colleague{db, locks, env.SQL, what[3], bufio.NewScanner(os.Stdin)}
	if err := jobs[what[0]](c); err != nil {
		fmt.Println("child:", err)
		return
	}
	fmt.Println("child: done")
}

// next is the next line it is told, "" at the end.
func (c *colleague) next() string {
	c.lines.Scan()
	return c.lines.Text()
}

func (c *colleague) run(tx execer, query string, args ...any) error {
	_, err := tx.ExecContext(context.Background(), c.sql(query), args...)
	return err
}

// holding holds the keys it is told, all at once, until it is no more.
func holding(c *colleague) error {
	for key := c.next(); key != ""; key = c.next() {
		if _, err := c.locks.Lock(context.Background(), key); err != nil {
			return err
		}
		fmt.Println("child: held")
	}
	return nil
}

// writing adds one to the ledger, under the key it is told: it locks, reads, checks that it has the lock, waits for a word, and
// writes. "fenced" writes within a fence, "blind" trusts its check.
func writing(c *colleague) error {
	for how := c.next(); how != ""; how = c.next() {
		said, err := c.writeOnce(how, c.next())
		if err != nil {
			return err
		}
		fmt.Println("child:", said)
	}
	return nil
}

func (c *colleague) writeOnce(how, id string) (said string, err error) {
	ctx := context.Background()
	// Not renewed: a process that stands in the middle of a renewal has the row locked, on MySQL, until its connection is dead.
	l, err := c.locks.Lock(ctx, id, rowlock.NoRenew())
	for errors.Is(err, rowlock.ErrLost) { // the answer came too late for so short a lease
		l, err = c.locks.Lock(ctx, id, rowlock.NoRenew())
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Unlock(ctx) }()
	var n int
	if err := c.db.QueryRowContext(ctx, c.sql(`SELECT n FROM `+c.table+` WHERE id = ?`), id).Scan(&n); err != nil {
		return "", err
	}
	if l.Context().Err() != nil { // too slow a machine for so short a lease: from the beginning, or the parent waits for ever
		_ = l.Unlock(ctx)
		return c.writeOnce(how, id)
	}
	fmt.Println("child: checked")
	c.next() // here it stands for longer than the lease
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }()
	if how == "fenced" {
		if err := l.Fence(ctx, tx); err != nil {
			return strings.Join(strings.SplitN(err.Error(), ":", 3)[:2], ":"), nil
		}
	}
	if err := c.run(tx, `UPDATE `+c.table+` SET n = ? WHERE id = ?`, n+1, id); err != nil {
		return "", err
	}
	return "written", tx.Commit()
}

// counting adds to the ledger, row 1, so many times, while it writes row 2 without any lock.
func counting(c *colleague) (err error) {
	var times int
	if _, err := fmt.Sscan(c.next(), &times); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := c.run(c.db, `UPDATE `+c.table+` SET n = n + 1 WHERE id = 2`); err != nil {
				fmt.Println("child: beside the locks:", err)
			}
		}
	})
	defer wg.Wait()
	defer stop()
	for range times {
		if err := c.locks.Do(context.Background(), "count", c.countOnce); err != nil {
			return err
		}
	}
	return nil
}

func (c *colleague) countOnce(ctx context.Context, l *rowlock.Lock) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT n FROM `+c.table+` WHERE id = 1`).Scan(&n); err != nil {
		return err
	}
	if err := c.run(tx, `UPDATE `+c.table+` SET n = ? WHERE id = 1`, n+1); err != nil {
		return err
	}
	return tx.Commit()
}
