package transition_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/transition"
)

// elsewhere is an old lock that an old process holds, or none.
type elsewhere struct{ held bool }

func (o *elsewhere) Lock(context.Context, string, bool) (transition.OldHeld, error) {
	if o.held {
		return nil, lease.ErrHeld
	}
	return o, nil
}
func (o *elsewhere) HeldAlone(context.Context, string) (bool, error) { return o.held, nil }
func (*elsewhere) Check(context.Context) error                       { return nil }
func (*elsewhere) Unlock(context.Context) error                      { return nil }

// ward is a database that the doctor examines.
type ward struct {
	*testing.T
	e     *testdb.Env
	store lease.Store
	old   *elsewhere
}

func (w ward) start(s transition.Stage) *transition.Locks {
	w.Helper()
	locks, end, err := stage(w.Context(), placeOf(w.e), s, w.old, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(end)
	return locks
}

// meets has a process find an old one at its lock.
func (w ward) meets(locks *transition.Locks) {
	w.Helper()
	w.old.held = true
	if _, err := locks.TryLock(w.Context(), "job"); !errors.Is(err, lease.ErrHeld) && !errors.Is(err, transition.ErrOrder) {
		w.Errorf("beside an old process: %v", err)
	}
	w.old.held = false
}

// later makes notices older by two hours.
func (w ward) later(what string) {
	w.Helper()
	by := map[string]string{"pgx": "interval '2 hours'", "mysql": "INTERVAL 2 HOUR", "sqlite": "7200000"}[w.e.Driver]
	w.e.Exec(w.T, `UPDATE {rowlock} SET expires_at = expires_at - `+by+` WHERE {key} = ?`, []byte("rowlock transition/locks/"+what))
}

// wants has the doctor say these, and nothing that would wake an operator.
func (w ward) wants(severity doctor.Severity, says ...string) {
	w.Helper()
	r, err := doctor.Examine(w.Context(), w.e.Pool(w), w.e.Dialect, &doctor.Options{
		Only: []string{"transitions", "bad-rows", "orphans"}, Limit: time.Minute,
	})
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range r.Findings {
		switch said := fmt.Sprint(f.Summary, f.Cure, f.Evidence); {
		case f.ID != "transitions":
			if f.Severity > doctor.OK {
				w.Errorf("notices are no %s: %+v", f.ID, f)
			}
		case f.Severity != severity || !f.Checked || len(f.Evidence) == 0:
			w.Errorf("%+v, want %s", f, severity)
		default:
			for _, want := range says {
				if !strings.Contains(said, want) {
					w.Errorf("%s\nwant %q", said, want)
				}
			}
		}
	}
}

func TestTheDoctorSaysHowFarATransitionIs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		w := ward{t, e, notices(t, e), &elsewhere{}}
		w.wants(doctor.OK, "no transition", "{transitions 0 ")
		both := w.start(transition.Both)
		w.wants(doctor.Info, `transition "locks": no old process was met at a lock for `, "is not seen",
			"{locks: first process with Both ", "wait: New is refused", "{transitions 1 ")
		w.later("since both")
		w.wants(doctor.Info, "met at a lock for 2h0m", `transition "locks": deploy New`, "first process with Both 2h0m")
		w.meets(both)
		w.wants(doctor.Info, "an old process held a lock ", " ago: it takes the old lock alone", "wait: New is refused",
			"{locks: old process last met ")
		w.later("seen")
		w.wants(doctor.Info, "met at a lock for 2h0m", "deploy New, unless", "old process last met 2h0m")
		now := w.start(transition.New)
		w.wants(doctor.Info, "met at a lock for 2h0m", `once every process has New`, `transition.Forget(ctx, store, "locks")`,
			"{locks: first process with New ")
		w.meets(now)
		w.wants(doctor.Info, "does not keep out New", "end the old process, or go back to Both")
		w.later("seen")
		w.start(transition.New)
		w.later("since new")
		w.start(transition.New)
		w.wants(doctor.Info, `once every process has New`, "first process with New 2h0m")
		if err := transition.Forget(t.Context(), w.store, "locks"); err != nil {
			t.Error(err)
		}
		w.wants(doctor.OK, "no transition")
	})
}

// A database may have several, and names may have any bytes that a key has.
func TestTheDoctorTellsTransitionsApart(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		w := ward{t, e, notices(t, e), &elsewhere{}}
		for _, name := range []string{"a/b", "z"} {
			_, end, err := stage(t.Context(), placeOf(e), transition.Both, w.old, func(c *transition.Config) { c.Name = name })
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(end)
		}
		own, err := w.store.Acquire(t.Context(), []lease.AcquireRequest{{Key: "rowlock transition/own", Owner: lease.NewOwner(), TTL: time.Minute}})
		if err != nil || own[0].Err != nil {
			t.Fatal(err, own)
		}
		w.wants(doctor.Info, `transition "a/b": no old`, `transition "z": no old`, "{transitions 2 ")
		if err := transition.Forget(t.Context(), w.store, "a/b"); err != nil {
			t.Error(err)
		}
		w.meets(w.start(transition.Both))
		w.wants(doctor.Info, `transition "locks": an old process`, `transition "z": no old`, "{transitions 2 ")
	})
}
