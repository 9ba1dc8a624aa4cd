package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/internal/program"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// each calls f with a worker in this process on each database, and with what it prints.
func each(t *testing.T, f func(t *testing.T, w *worker, printed *bytes.Buffer)) {
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			var printed bytes.Buffer
			w := &worker{name: "w", out: json.NewEncoder(&printed), deaf: func(err error) { t.Error(err) }}
			var err error
			if w.db, err = source.Open(t.Context(), program.Fresh(t, k), dialect.Prefix("cron_")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.db.Close() })
			if err := w.open(t.Context(), "cron_"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.locks.Close() })
			f(t, w, &printed)
		})
	}
}

var noon = time.Unix(1800000000, 0)

// Who is a little late must see that the tick was run, and not find the key free.
func TestTheKeyStaysLockedForAMomentAfterARun(t *testing.T) {
	each(t, func(t *testing.T, w *worker, _ *bytes.Buffer) {
		w.takes = 0
		began := time.Now()
		if err := w.try(t.Context(), noon); err != nil {
			t.Fatal(err)
		}
		var held *rowlock.HeldError
		_, err := w.locks.TryLock(t.Context(), "cron/"+job)
		if took := time.Since(began); !errors.As(err, &held) && took < minHold {
			t.Errorf("%v after the grant the key was free: %v", took, err)
		}
		if held != nil && held.Remaining > minHold {
			t.Errorf("held for %v more: a lease that no worker leaves keeps the next tick waiting", held.Remaining)
		}
	})
}

// If those who find a tick run took the lock to see it, each would keep it from the next for
// minHold, and every process more would make the schedule later.
func TestWhoFindsATickRunDoesNotTakeTheLock(t *testing.T) {
	each(t, func(t *testing.T, w *worker, printed *bytes.Buffer) {
		w.wasRunByOther(t)
		before := w.grant(t)
		if err := w.tick(t.Context(), noon); err != nil || !strings.Contains(printed.String(), `"other"`) {
			t.Errorf("%v, said %s", err, printed)
		}
		if after := w.grant(t); after != before+1 {
			t.Errorf("token %d after %d: the key was taken in between", after, before)
		}
	})
}

func (w *worker) wasRunByOther(t *testing.T) {
	t.Helper()
	if _, err := w.db.Exec(w.db.Rebind(`INSERT INTO cron_runs (job, tick, ran_by) VALUES (?, ?, 'other')`), job, noon.Unix()); err != nil {
		t.Fatal(err)
	}
}

// grant takes the lock and gives it back, and returns its token.
func (w *worker) grant(t *testing.T) rowlock.Token {
	t.Helper()
	l, err := w.locks.Lock(t.Context(), "cron/"+job)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l.Token()
}

// Another worker may have run the tick between our first read and our lock.
func TestATickIsLookedAtAgainUnderTheLock(t *testing.T) {
	each(t, func(t *testing.T, w *worker, printed *bytes.Buffer) {
		w.wasRunByOther(t)
		if err := w.try(t.Context(), noon); err != nil || strings.Contains(printed.String(), "runs") || !strings.Contains(printed.String(), `"other"`) {
			t.Errorf("%v, said %s", err, printed)
		}
	})
}

func TestAWorkerThatHasLostItsLockRecordsNothing(t *testing.T) {
	each(t, func(t *testing.T, w *worker, _ *bytes.Buffer) {
		l, err := w.locks.TryLock(t.Context(), "cron/"+job)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.record(t.Context(), l, noon); err == nil {
			t.Error("recorded without the lock")
		}
		w.takes = time.Hour
		if err := w.work(t.Context(), l); !errors.Is(err, rowlock.ErrUnlocked) {
			t.Errorf("the job goes on without the lock: %v", err)
		}
		if by, err := w.ranBy(t.Context(), noon); err == nil {
			t.Errorf("run by %q", by)
		}
	})
}

// The process that started the workers may be killed, and must not leave them behind.
func TestAWorkerEndsWhenNobodyReadsWhatItSays(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), binary, "-db", program.Fresh(t, testdb.Kinds[0]), "-name", "w", "-schedule", "* * * * * *", "-takes", "1ms")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
		_ = cmd.Process.Kill()
		<-ended
	}
}
