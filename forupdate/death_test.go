package forupdate_test

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
	"syscall"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// client is a rowlock client on a store of its own, as another process would have.
func client(tb testing.TB, e *testdb.Env, d time.Duration) (*rowlock.Client, *forupdate.Store) {
	tb.Helper()
	s := open(tb, e.DB, e)
	c, err := rowlock.New(s, &rowlock.Config{TTL: d, Reaper: rowlock.ReaperConfig{Off: true}})
	ok(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c, s
}

// soon is how long a waiter may take to see that a key is free: PollMax, and a slow machine. It is
// far less than the TTL of a holder that dies.
const soon = 20 * time.Second

func TestASessionThatIsEndedLetsItsKeyGoAtOnceAndItsHolderIsTold(t *testing.T) {
	const long, every = time.Minute, 300 * time.Millisecond
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s := open(t, e.DB, e)
		holder, err := rowlock.New(s, &rowlock.Config{TTL: long, RenewEvery: every, Reaper: rowlock.ReaperConfig{Off: true}})
		ok(t, err)
		defer holder.Close()
		others, _ := client(t, e, long)
		l, err := holder.Lock(t.Context(), "k")
		ok(t, err)
		waiter := make(chan *rowlock.Lock, 1)
		go func() {
			next, err := others.Lock(t.Context(), "k")
			if err != nil {
				t.Error(err)
			}
			waiter <- next
		}()
		if _, killed := kill(t, e, s, "k"); !killed {
			t.Fatal("there was nothing to kill")
		}
		began := time.Now()
		next := <-waiter
		if took := time.Since(began); took > soon {
			t.Errorf("a waiter had the key %s after its holder's session had ended; the TTL is %s", took, long)
		}
		if next.Token() <= l.Token() {
			t.Errorf("token %d came after token %d", next.Token(), l.Token())
		}
		select {
		case <-l.Context().Done():
			wantIs(t, context.Cause(l.Context()), rowlock.ErrLost)
			t.Logf("the holder was told after %s, at most %s were promised", time.Since(began), every+2*time.Second)
		// Promised on a machine that is not busy.
		case <-time.After(every + 2*time.Second + soon):
			t.Error("the holder was not told")
		}
		tx := begin(t, e)
		wantIs(t, s.Fence(t.Context(), lease.InTx(tx), lease.Lease{Key: "k", Token: l.Token()}), lease.ErrFenced)
		ok(t, tx.Rollback())
		ok(t, next.Unlock(t.Context()))
	})
}

// child is another process that holds a key.
type child struct {
	*testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func newChild(t *testing.T, e *testdb.Env, key string, d time.Duration) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildAtWork$")
	cmd.Env = append(os.Environ(), "ROWLOCK_CHILD="+strings.Join([]string{e.Name, e.Dialect.Names().Prefix, e.Source, key, d.String()}, "\n"))
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	c := &child{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(c.kill)
	c.expect("held")
	return c
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func (c *child) expect(what string) {
	c.Helper()
	for c.out.Scan() {
		if said, ok := strings.CutPrefix(c.out.Text(), "child: "); ok {
			if said != what {
				c.Fatalf("the child said %q, want %q", said, what)
			}
			return
		}
	}
	c.Fatalf("the child said nothing, want %q", what)
}

// TestChildAtWork is the child. It holds its key, and when it is told to writes in a fenced
// transaction.
func TestChildAtWork(t *testing.T) {
	what := strings.Split(os.Getenv("ROWLOCK_CHILD"), "\n")
	if len(what) != 5 {
		t.Skip("only for a child process")
	}
	d, err := time.ParseDuration(what[4])
	ok(t, err)
	for _, k := range testdb.Kinds {
		if k.Name != what[0] {
			continue
		}
		db, err := sql.Open(k.Driver, what[2])
		ok(t, err)
		defer db.Close()
		e := &testdb.Env{Kind: k, DB: db, Dialect: k.New(dialect.Prefix(what[1])), Source: what[2]}
		c, _ := client(t, e, d)
		l, err := c.Lock(t.Context(), what[3])
		ok(t, err)
		fmt.Println("child: held")
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			tx := begin(t, e)
			switch err := l.Fence(t.Context(), tx); {
			case errors.Is(err, rowlock.ErrFenced), errors.Is(err, rowlock.ErrLost):
				fmt.Println("child: refused")
			default:
				fmt.Println("child: fenced", err)
			}
			_ = tx.Rollback()
		}
	}
}

func TestAProcessThatIsKilledLetsItsKeyGoAtOnce(t *testing.T) {
	const long = time.Minute
	onServers(t, func(t *testing.T, e *testdb.Env) {
		c := newChild(t, e, "k", long)
		rival, _ := client(t, e, long)
		_, err := rival.TryLock(t.Context(), "k")
		wantIs(t, err, rowlock.ErrHeld)
		waiting, got := make(chan struct{}, 8), make(chan *rowlock.Lock, 1)
		go func() {
			l, err := rival.Lock(t.Context(), "k", rowlock.OnWait(func(rowlock.Waiting) { waiting <- struct{}{} }))
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		<-waiting // from now on it only looks
		c.kill()
		began := time.Now()
		l := <-got
		if took := time.Since(began); took > soon {
			t.Errorf("the key was free %s after its holder was killed; the TTL is %s", took, long)
		} else {
			t.Logf("free after %s", took)
		}
		if l.Token() < 2 {
			t.Errorf("token %d came after the killed holder's", l.Token())
		}
		ok(t, l.Unlock(t.Context()))
	})
}

func TestAProcessThatIsStoppedLosesItsKeyWhenItsTTLEnds(t *testing.T) {
	const d = 4 * time.Second // of a shorter one little may be left of a process that gets no turn
	onServers(t, func(t *testing.T, e *testdb.Env) {
		c := newChild(t, e, "k", d)
		rival, s := client(t, e, d)
		ok(t, c.cmd.Process.Signal(syscall.SIGSTOP))
		began := time.Now()
		rows, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
		ok(t, err)
		left := rows[0].Remaining // less than two thirds of the TTL if a renewal was late
		l, err := rival.Lock(t.Context(), "k")
		ok(t, err)
		if took := time.Since(began); took < left-100*time.Millisecond || took > d+time.Second+soon {
			t.Errorf("the key was free %s after its holder was stopped, which had %s of %s left", took, left, d)
		} else {
			t.Logf("free after %s", took)
		}
		ok(t, c.cmd.Process.Signal(syscall.SIGCONT))
		_, err = fmt.Fprintln(c.in, "write")
		ok(t, err)
		c.expect("refused")
		ok(t, l.Unlock(t.Context()))
	})
}
