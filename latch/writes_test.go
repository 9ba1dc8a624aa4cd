package latch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

func full(s *scene) {
	s.party(ours, "p", true)
	s.party(ours, "q", true)
	s.party(theirs, "p", false)
	s.party(theirs, "q", true)
	s.party(theirs, "r", true)
}

// withOne has p entered, as another barrier's p has too, and has left it.
func withOne(s *scene) {
	s.party(ours, "p", true)
	s.party(theirs, "p", true)
	s.left(theirs, "p")
}

func inside(s *scene) { withOne(s); s.state(rows.BarrierOpen) }

func entersQ(ctx context.Context, s *scene) (bool, error) {
	return s.row.Enter("q", hour).Run(ctx, s.on, s.Dialect)
}

func leavesP(ctx context.Context, s *scene) (bool, error) {
	return s.row.Leave("p").Run(ctx, s.on, s.Dialect)
}

// writes are those whose conditions no single process can break.
var writes = []write{
	{
		"a latch is kept", rows.Latches, func(*scene) {},
		func(ctx context.Context, s *scene) (bool, error) {
			return s.row.Keep(hour).Run(ctx, s.on, s.Dialect)
		},
		map[string]func(*scene){"expired": (*scene).expired, "reset": (*scene).reset},
	},
	{
		"a party counts down", rows.Latches, func(*scene) {},
		func(ctx context.Context, s *scene) (bool, error) {
			return s.row.Count("p").Run(ctx, s.on, s.Dialect)
		},
		map[string]func(*scene){"expired": (*scene).expired, "reset": (*scene).reset},
	},
	{
		"a latch begins anew", rows.Latches, (*scene).expired,
		func(ctx context.Context, s *scene) (bool, error) {
			before := s.rows()
			row := s.row
			row.ID = next
			_, err := row.Take(3, hour).Run(ctx, s.on, s.Dialect)
			return s.rows() != before, err
		},
		map[string]func(*scene){"taken by another": func(s *scene) {
			s.do("UPDATE {rowlock_latch} SET expires_at = " + later)
		}},
	},
	{
		"a done barrier is reset", rows.Barriers, in(rows.BarrierDone),
		func(ctx context.Context, s *scene) (bool, error) {
			return s.row.Reset(next, hour, rows.BarrierDone).Run(ctx, s.on, s.Dialect)
		},
		map[string]func(*scene){
			"expired": (*scene).expired, "reset": (*scene).reset, "open": in(rows.BarrierOpen),
		},
	},
	{"a party enters", rows.Barriers, withOne, entersQ, map[string]func(*scene){
		"expired": (*scene).expired, "reset": (*scene).reset, "open": in(rows.BarrierOpen),
		"broken": in(rows.BarrierBroken),
	}},
	{
		"a party is alive", rows.Barriers, withOne,
		func(ctx context.Context, s *scene) (bool, error) {
			return rows.Row{ID: ours}.Beat("p", hour).Run(ctx, s.on, s.Dialect)
		},
		map[string]func(*scene){"only the other's is left": func(s *scene) { s.without("p") }},
	},
	{"a party leaves", rows.Barriers, inside, leavesP, map[string]func(*scene){
		"expired": (*scene).expired, "reset": (*scene).reset,
		"filling": in(rows.BarrierFilling), "broken": in(rows.BarrierBroken),
		"only the other's has entered": func(s *scene) { s.without("p") },
	}},
	{"a barrier opens", rows.Barriers, full, stepped("barrier-open"), map[string]func(*scene){
		"reset": (*scene).reset, "broken": in(rows.BarrierBroken),
		"one has not entered": func(s *scene) { s.without("q") },
		"one is dead":         func(s *scene) { s.without("q"); s.party(ours, "q", false) },
	}},
	{"a barrier is done", rows.Barriers, func(s *scene) {
		full(s)
		s.state(rows.BarrierOpen)
		s.left(ours, "p")
		s.left(ours, "q")
		s.left(theirs, "q")
	}, stepped("barrier-done"), map[string]func(*scene){
		"reset": (*scene).reset, "broken": in(rows.BarrierBroken),
		"only the other's has left": func(s *scene) { s.without("q"); s.party(ours, "q", true) },
	}},
	{"a barrier breaks", rows.Barriers, func(s *scene) {
		inside(s)
		s.party(ours, "q", false)
		s.left(theirs, "q")
		s.party(theirs, "r", false)
	}, stepped("barrier-break"), map[string]func(*scene){
		"reset": (*scene).reset, "done": in(rows.BarrierDone),
		"it is alive":   func(s *scene) { s.without("q"); s.party(ours, "q", true) },
		"it has left":   func(s *scene) { s.left(ours, "q") },
		"it is removed": func(s *scene) { s.without("q") },
	}},
}

// Of an entry that commits after the opening, those that leave may not know. A server of MySQL has
// the statement by which they leave wait for the entry.
func TestABarrierOpensAfterTheEntriesThatAreUnderWay(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name != "postgres" {
			t.Skip("for the snapshots of PostgreSQL")
		}
		s := r.scene(t, rows.Barriers)
		full(s)
		late, err := r.DB.BeginTx(t.Context(), nil)
		ok(t, err)
		defer late.Rollback()
		_, err = late.ExecContext(t.Context(), s.Dialect.Text("barrier-enter"), []byte("late"), time.Hour.Microseconds(),
			rows.Barriers, []byte("b"), ours[:])
		ok(t, err)
		opens, err := r.DB.BeginTx(t.Context(), nil)
		ok(t, err)
		defer opens.Rollback()
		_, err = opens.ExecContext(t.Context(), `SET LOCAL lock_timeout = '50ms'`)
		ok(t, err)
		_, err = opens.ExecContext(t.Context(), s.Dialect.Text("barrier-open"), rows.Barriers, []byte("b"), ours[:])
		if err == nil || !strings.Contains(err.Error(), "55P03") {
			t.Errorf("the barrier opens while a party enters: %v", err)
		}
		ok(t, opens.Rollback())
		ok(t, late.Commit())
		ok(t, must(stepped("barrier-open")(t.Context(), s)))
		if did, err := entersQ(t.Context(), s); err != nil || did {
			t.Errorf("a party enters a barrier that is open: %t, %v", did, err)
		}
	})
}

// A dead party is one of this barrier that has not left, whatever the parties of another have done.
// All are told of the first to die: those that a break has ended stop beating too.
func TestADeadPartyIsOneOfThisBarrier(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.scene(t, rows.Barriers)
		s.party(theirs, "a", false)
		for name, alive := range map[string]bool{"b": false, "c": true, "d": false, "e": false} {
			s.party(ours, name, alive)
		}
		s.left(ours, "b")
		s.left(theirs, "e")
		for i, name := range []string{"e", "b", "a"} { // a minute after each other, and the rest later
			before := strings.Repeat(" - {second}", 60*(i+1))
			s.do("UPDATE {rowlock_party} SET alive_until = alive_until"+before+" WHERE party = ?", []byte(name))
		}
		s.party(next, "f", true)
		dead, err := rows.DeadParty(t.Context(), s.on, s.Dialect, ours)
		if err != nil || dead != "e" {
			t.Errorf("%q is dead: %v", dead, err)
		}
		if dead, err := rows.DeadParty(t.Context(), s.on, s.Dialect, next); err != nil || dead != "" {
			t.Errorf("%q, which is alive, is dead: %v", dead, err)
		}
		v, err := rows.LookAt(s.Dialect, s.row, func(query string, args []any, dest ...any) error {
			return s.on.QueryRow(t.Context(), query, args, dest...)
		})
		if err != nil || v.Dead != 2 || v.Gone != 1 || v.Counted != 4 {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// A generation has a higher number than those before, also after the row has expired, and what is
// kept is never kept for less.
func TestGenerationsGrowAndALatchIsNeverKeptForLess(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.scene(t, rows.Latches)
		ok(t, must(s.row.Keep(0).Run(t.Context(), s.on, s.Dialect)))
		if n := r.count(t, "SELECT COUNT(*) FROM {rowlock_latch} WHERE expires_at > {now} + {second} + {second}"); n != 2 {
			t.Errorf("%d latches are kept for a minute, want both", n)
		}
		s.expired()
		row := s.row
		row.ID = next
		ok(t, must(row.Take(3, hour).Run(t.Context(), s.on, s.Dialect)))
		ok(t, must(row.Reset(ours, hour, 0).Run(t.Context(), s.on, s.Dialect)))
		if n := r.count(t, "SELECT generation FROM {rowlock_latch} WHERE {key} = ?", []byte("b")); n != 3 {
			t.Errorf("the third generation has number %d", n)
		}
	})
}

// What is removed is of the generation that is over.
func TestOnlyThePartiesOfTheGenerationThatIsOverAreRemoved(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.scene(t, rows.Barriers)
		full(s)
		n, err := rows.DropParties(t.Context(), s.on, s.Dialect, ours, 10)
		if left := r.count(t, "SELECT COUNT(*) FROM {rowlock_party} WHERE id = ?", theirs[:]); err != nil || n != 2 || left != 3 {
			t.Errorf("%d are removed, and %d of the other's 3 are left: %v", n, left, err)
		}
	})
}

// A sweep goes through all generations that have parties, in order, and knows those that are over.
func TestASweepMeetsEachGenerationOnce(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.scene(t, rows.Barriers)
		full(s)
		s.party(next, "p", true)
		after := lease.Owner{}
		for _, want := range []lease.Owner{ours, theirs, next} {
			id, live, found, err := rows.NextParties(t.Context(), s.on, s.Dialect, after)
			if err != nil || !found || id != want || live != (want != next) {
				t.Fatalf("after %x: %x, live %t, found %t, %v; want %x", after, id, live, found, err, want)
			}
			after = id
		}
		if id, _, found, err := rows.NextParties(t.Context(), s.on, s.Dialect, after); err != nil || found {
			t.Errorf("after the last: %x, %v", id, err)
		}
	})
}

// A latch that has expired may be in a transaction that keeps it. A sweep passes over it, and does
// not remove it once that transaction has ended.
func TestASweepPassesOverALatchThatIsBeingKept(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("SQLite has one writer")
		}
		s := r.scene(t, rows.Latches)
		s.do("UPDATE {rowlock_latch} SET expires_at = {now} - {second}")
		tx, err := r.DB.BeginTx(t.Context(), nil)
		ok(t, err)
		defer tx.Rollback()
		_, err = tx.ExecContext(t.Context(), s.SQL("UPDATE {rowlock_latch} SET expires_at = "+later+" WHERE kind = 0 AND {key} = ?"), []byte("b"))
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		swept := make(chan error, 1)
		go func() {
			n, err := rows.Sweep(ctx, s.on, s.Dialect, 10)
			if err == nil && n != 1 {
				t.Errorf("%d latches are removed, want the other", n)
			}
			swept <- err
		}()
		select {
		case err = <-swept:
			ok(t, err)
			ok(t, tx.Commit())
		case <-time.After(patience / 3):
			t.Error("the sweep waits for the latch")
			ok(t, tx.Commit())
			<-swept
		}
		if n := r.count(t, "SELECT COUNT(*) FROM {rowlock_latch}"); n != 1 {
			t.Errorf("%d latches are left, want the one that was kept", n)
		}
	})
}

// must is the error, or one if nothing was done.
func must(did bool, err error) error {
	if err == nil && !did {
		return context.Canceled
	}
	return err
}
