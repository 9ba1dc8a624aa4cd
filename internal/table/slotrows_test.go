package table_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A limit that gets another number of slots begins a generation, and its peak stays.
func TestEachChangeOfALimitBeginsAGeneration(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		limited(t, e)
		for _, c := range []struct{ slots, peak int }{{2, 4}, {6, 6}, {5, 6}} {
			before, err := sqlstore.LookAtLimit(t.Context(), on, e.Dialect, "s")
			if err != nil {
				t.Fatal(err)
			}
			ok, err := sqlstore.ResizeLimit(t.Context(), on, e.Dialect, "s", c.slots)
			now, failed := sqlstore.LookAtLimit(t.Context(), on, e.Dialect, "s")
			want := sqlstore.Limit{Exists: true, Slots: c.slots, Peak: c.peak, Generation: before.Generation + 1}
			if !ok || err != nil || failed != nil || now != want {
				t.Errorf("%d slots: %t, %v; the limit is %+v, want %+v; %v", c.slots, ok, err, now, want, failed)
			}
		}
		other, err := sqlstore.LookAtLimit(t.Context(), on, e.Dialect, "r")
		if want := (sqlstore.Limit{Exists: true, Slots: 4, Peak: 4, Generation: 2}); err != nil || other != want {
			t.Errorf("the other limit is %+v, %v", other, err)
		}
	})
}

// slotWays grant the slot k, which is free for the first, and has a holder and token 5 for the
// second.
var slotWays = map[string]struct {
	set   string
	grant func(t *testing.T, e *testdb.Env, on *conn.Session, w *sqlstore.Within) error
}{
	"apply-any-within": {freed, func(t *testing.T, e *testdb.Env, on *conn.Session, w *sqlstore.Within) error {
		c := toNext("k")
		c.From.Token = 5
		return chooseAny(t, e, on, []sqlstore.Change{c}, 1, w)
	}},
	"apply-within": {"note = note", func(t *testing.T, e *testdb.Env, on *conn.Session, w *sqlstore.Within) error {
		return handSlot(t, e, on, 5, w)
	}},
}

func handSlot(t *testing.T, e *testdb.Env, on *conn.Session, token lease.Token, w *sqlstore.Within) error {
	t.Helper()
	had := lease.Lease{Key: "k", Owner: holder, Token: token}
	changes := []sqlstore.Change{{From: had, To: next, Note: "n", TTL: time.Hour}}
	_, err := e.Dialect.ApplyWithin(t.Context(), on, changes, w)
	return err
}

// A slot is granted in the generation in which the slots were counted, and in no other.
func TestEachSlotIsOfTheGenerationThatWasCounted(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		limited(t, e)
		for name, way := range slotWays {
			for w, want := range map[sqlstore.Within]string{
				{Name: "s", Generation: 3}: "k6", {Name: "r", Generation: 2}: "k6",
				{Name: "s", Generation: 2}: "", {Name: "r", Generation: 3}: "", {Name: "s", Generation: 4}: "",
				{Name: "t", Generation: 3}: "",
			} {
				ready(t, e, way.set)
				err := way.grant(t, e, on, &w)
				if got := nextHas(t, e); err != nil || got != want {
					t.Errorf("%s in %+v: next has %q, want %q; %v", name, w, got, want, err)
				}
			}
		}
	})
}

// While a limit is being changed, no slot is granted. PostgreSQL does not wait for the change.
func TestEachSlotIsOfALimitThatIsNotBeingChanged(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		for name, way := range slotWays {
			limited(t, e)
			ready(t, e, way.set)
			first, second := begun(t, e), begun(t, e)
			do(t, second, "ROLLBACK")
			do(t, first, e.SQL("UPDATE {rowlock_limit} SET generation = generation + 1"))
			ended := make(chan error, 1)
			go func() { ended <- way.grant(t, e, second, &sqlstore.Within{Name: "s", Generation: 3}) }()
			untilOneWaits(t, e, func() bool { return len(ended) > 0 })
			if waited := len(ended) == 0; waited != (e.Driver == "mysql") {
				t.Errorf("%s has waited: %t", name, waited)
			}
			do(t, first, "COMMIT")
			if err := <-ended; err != nil || nextHas(t, e) != "" {
				t.Errorf("%s: next has %q; %v", name, nextHas(t, e), err)
			}
		}
	})
}

// A limit stays as it is until what was granted in its generation has been committed.
func TestEachSlotKeepsItsLimitUntilItsCommit(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		for name, way := range slotWays {
			limited(t, e)
			ready(t, e, way.set)
			first := begun(t, e)
			err := way.grant(t, e, first, &sqlstore.Within{Name: "s", Generation: 3})
			n, failed := rowsOf(t, on, e.SQL("SELECT 1 FROM {rowlock_limit} FOR UPDATE SKIP LOCKED"), nil)
			do(t, first, "COMMIT")
			if err != nil || failed != nil || n != 1 || nextHas(t, e) != "k6" {
				t.Errorf("%s: %d of the two limits may be changed, and next has %q; %v, %v", name, n, nextHas(t, e), err, failed)
			}
		}
	})
}

// A slot is handed over by the owner that the row names, with the token that follows.
func TestEachSlotThatIsHandedOverIsTheHolders(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		in := map[lease.Token]*conn.Session{0: readySession(t, e, 0), 100: readySession(t, e, 100)}
		limited(t, e)
		for _, c := range []struct {
			set        string
			token, era lease.Token
			want       string
		}{
			{"note = note", 5, 0, "k6"},
			{"note = note", 5, 100, "k101"},
			{expired, 5, 0, "k6"},
			{moved, 5, 0, ""},
			{taken, 5, 0, ""},
			{freed, 5, 0, ""},
			{raised, 5, 0, ""},
			{lowered, 5, 0, ""},
			{spent, lease.MaxToken, 0, ""},
		} {
			ready(t, e, c.set)
			before := rowOf(t, e)
			err := handSlot(t, e, in[c.era], c.token, &sqlstore.Within{Name: "s", Generation: 3})
			if got := nextHas(t, e); err != nil || got != c.want || c.want == "" && rowOf(t, e) != before {
				t.Errorf("after %s, in era %d: next has %q, want %q; %v", c.set, c.era, got, c.want, err)
			}
		}
	})
}

// A slot that another transaction has locked is not handed over, and not waited for.
func TestEachSlotThatIsLockedIsNotHandedOver(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		on := readySession(t, e, 0)
		limited(t, e)
		ready(t, e, "note = note")
		first := begun(t, e)
		do(t, first, e.SQL("UPDATE {rowlock} SET acquired_at = acquired_at + {second}"))
		err := handSlot(t, e, on, 5, &sqlstore.Within{Name: "s", Generation: 3})
		do(t, first, "ROLLBACK")
		if got := nextHas(t, e); err != nil || got != "" {
			t.Errorf("next has %q; %v", got, err)
		}
	})
}
