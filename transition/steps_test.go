package transition_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/transition"
)

// A process dies after each of its steps. The next one has the lock once what it left has ended, be it
// an old process or one in stage Both.
func TestAProcessThatDiesAfterAnyStepLeavesTheLock(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, name string, n neighbour) {
		e.Exec(t, `CREATE TABLE `+placeOf(e).name("counter")+` (n BIGINT PRIMARY KEY, token BIGINT NOT NULL, by_process BIGINT NOT NULL)`)
		t.Cleanup(func() { e.Exec(t, `DROP TABLE `+placeOf(e).name("counter")) })
		for _, step := range []string{"both ours", "both old", "both unlock", "both unlocked", "new look"} {
			if strings.HasPrefix(step, "new") {
				_, end, err := stage(t.Context(), placeOf(e), transition.Both, mustOld(t, e, n), nil) // is recorded
				if err != nil {
					t.Fatal(err)
				}
				end()
			}
			die(t, e, name+" "+step)
			old := make(chan error, 1)
			go func() {
				a, err := n.alone(t.Context(), placeOf(e))
				if err == nil {
					err = a.unlock()
				}
				old <- err
			}()
			if err := within(t, old); err != nil {
				t.Errorf("%s: an old process: %v", step, err)
			}
			locks, end, err := stage(t.Context(), placeOf(e), transition.Both, mustOld(t, e, n), nil)
			if err != nil {
				t.Fatal(err)
			}
			l, err := locks.Lock(t.Context(), "job")
			if err != nil {
				t.Fatalf("%s: %v", step, err)
			}
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			end()
		}
	})
}

// die runs a process until it has killed itself.
func die(t *testing.T, e *testdb.Env, role string) {
	t.Helper()
	cmd := adaptertest.Go(role)(t, e, "")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for said := bufio.NewScanner(out); said.Scan(); {
		if strings.HasPrefix(said.Text(), "worker: in") {
			_, _ = io.WriteString(in, "go on\n")
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%s: %v, want that it was killed", role, err)
	}
}

func within(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("nothing after 30 s")
		return nil
	}
}

func mustOld(t *testing.T, e *testdb.Env, n neighbour) transition.OldLock {
	t.Helper()
	old, err := n.old(placeOf(e))
	if err != nil {
		t.Fatal(err)
	}
	return old
}

// Each of the two excludes Both, and Both says whether it was an old process.
func TestBothIsKeptOutByEitherLock(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, name string, n neighbour) {
		first, end1, err := stage(t.Context(), placeOf(e), transition.Both, mustOld(t, e, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer end1()
		second, end2, err := stage(t.Context(), placeOf(e), transition.Both, mustOld(t, e, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer end2()
		l, err := first.TryLock(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		wantHeld(t, second)
		wantSeen(t, e, false)
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		a, err := n.alone(t.Context(), placeOf(e))
		if err != nil {
			t.Fatal(err)
		}
		wantHeld(t, second)
		wantSeen(t, e, true)
		waits := make(chan error, 1)
		go func() {
			l, err := second.Lock(t.Context(), "job")
			if err == nil {
				err = l.Unlock(context.Background())
			}
			waits <- err
		}()
		if err := a.unlock(); err != nil {
			t.Error(err)
		}
		if err := within(t, waits); err != nil {
			t.Error(err)
		}
	})
}
