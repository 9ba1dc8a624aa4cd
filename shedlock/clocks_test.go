package shedlock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// byJava writes a row as ShedLock does whose clock is ahead by so many seconds.
func byJava(t *testing.T, e *testdb.Env, table, key string, ahead int) {
	t.Helper()
	plus := strings.Repeat(" + {second}", max(ahead, 0)) + strings.Repeat(" - {second}", max(-ahead, 0))
	now := "{now}" + plus
	if e.Driver == "pgx" {
		now = "({now} AT TIME ZONE 'UTC')" + plus
	}
	e.Exec(t, "DELETE FROM "+table+" WHERE name = ?", key)
	e.Exec(t, "INSERT INTO "+table+" (name, lock_until, locked_at, locked_by) VALUES (?, "+now+
		strings.Repeat(" + {second}", 9)+", "+now+", 'java-host')", key)
}

func wantClock(t *testing.T, err error, how string) {
	t.Helper()
	if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), how) || !strings.Contains(err.Error(), "usingDbTime") {
		t.Errorf("%v, want that a clock is %s", err, how)
	}
}

func TestAClockThatDiffersByAMinuteIsRefused(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s := open(t, e, table)
		byJava(t, e, table, "k", 60)
		wantClock(t, acquire(t, s, "k", lease.NewOwner()).Err, "ahead of")
		e.Exec(t, "UPDATE "+table+" SET lock_until = locked_at") // unlocked by that clock
		wantClock(t, acquire(t, s, "k", lease.NewOwner()).Err, "ahead of")

		mine := lease.NewOwner()
		wantGranted(t, acquire(t, s, "l", mine))
		release(t, s, "l", mine)
		if list, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{"l"}}); err != nil || len(list) != 1 {
			t.Fatal(err, list)
		}
		byJava(t, e, table, "l", -60) // it looks expired, and its holder may be at work
		wantClock(t, acquire(t, s, "l", lease.NewOwner()).Err, "or more behind")
		byJava(t, e, table, "l", 0) // the clock was set
		if a := acquire(t, s, "l", lease.NewOwner()); a.Err != nil || a.Granted {
			t.Errorf("%+v, want held", a)
		}
	})
}

// NTP keeps clocks nearer than that.
func TestAClockThatDiffersByLessThanTheMarginPasses(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s := open(t, e, table)
		wantGranted(t, acquire(t, s, "k", lease.NewOwner()))
		byJava(t, e, table, "k", 0)
		if a := acquire(t, s, "k", lease.NewOwner()); a.Err != nil || a.Granted {
			t.Errorf("%+v, want held", a)
		}
		expire(t, e, table)
		byJava(t, e, table, "other", -60) // of which nothing was seen before
		wantGranted(t, acquire(t, s, "k", lease.NewOwner()))
		wantGranted(t, acquire(t, s, "other", lease.NewOwner()))
	})
}

// MySQL takes the time of a statement when that begins. If it then waits for the row, or for a server
// that is busy, the row is locked before it was last seen unlocked.
func TestAStatementThatWaitedIsNoClockThatDiffers(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s := open(t, e, table)
		mine := lease.NewOwner()
		wantGranted(t, acquire(t, s, "k", mine))
		release(t, s, "k", mine)
		if list, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}}); err != nil || len(list) != 1 {
			t.Fatal(err, list)
		}
		byJava(t, e, table, "k", -2)
		if a := acquire(t, s, "k", lease.NewOwner()); a.Err != nil || a.Granted {
			t.Errorf("%+v, want held", a)
		}
		expire(t, e, table)
		wantGranted(t, acquire(t, s, "k", lease.NewOwner()))
	})
}

// ShedLock itself with a clock that is a minute ahead.
func TestTheClockOfAJavaProcessIsFound(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		testdb.Installed(t, "java")
		name := table(t, e, columns(e))
		e.Exec(t, "CREATE TABLE "+name+"_n (n BIGINT PRIMARY KEY, token BIGINT, by_process BIGINT)")
		t.Cleanup(func() { e.Exec(t, "DROP TABLE "+name+"_n") })
		cmd := java(name, "60")(t, e, name+"_n")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		defer in.Close()
		s := open(t, e, name)
		adaptertest.Eventually(t, "ShedLock to lock", func() bool {
			list, err := s.Inspect(t.Context(), lease.Filter{})
			return err == nil && len(list) == 1
		})
		wantClock(t, acquire(t, s, "job", lease.NewOwner()).Err, "ahead of")
	})
}
