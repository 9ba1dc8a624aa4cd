package latch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// A process reads a latch or barrier, and then writes by what it has read. Another process may come
// between the two, so that each write asks for itself what the read has asked. Here the write runs
// alone, on rows as the other process leaves them.

// scene is one latch or barrier b of two parties, and another one, whose rows no write may mistake
// for those of b.
type scene struct {
	*rig
	on  *conn.Session
	row rows.Row
	tb  testing.TB
}

var (
	ours, theirs, next = lease.Owner{1}, lease.Owner{2}, lease.Owner{3}

	hour  = time.Hour
	later = testdb.Later
)

func (r *rig) scene(tb testing.TB, kind int) *scene {
	tb.Helper()
	s := &scene{r, r.Session(tb), rows.Row{Kind: kind, Name: []byte("b"), ID: ours}, tb}
	for _, table := range []string{"rowlock_party", "rowlock_latch"} {
		s.do("DELETE FROM {" + table + "}")
	}
	for name, id := range map[string]lease.Owner{"b": ours, "other": theirs} {
		s.do("INSERT INTO {rowlock_latch} (kind, {key}, id, generation, parties, state, ended, made_at, expires_at)"+
			" VALUES (?, ?, ?, 1, 2, 0, 0, {now}, "+later+")", kind, []byte(name), id[:])
	}
	return s
}

func (s *scene) do(query string, args ...any) { s.Exec(s.tb, query, args...) }

// party writes that a party has entered, with a heartbeat, or without one for some time.
func (s *scene) party(id lease.Owner, name string, alive bool) {
	until := "{now} - {second}"
	if alive {
		until = later
	}
	s.do("INSERT INTO {rowlock_party} (id, phase, party, counted_at, alive_until) VALUES (?, 0, ?, {now}, "+until+")",
		id[:], []byte(name))
}

func (s *scene) left(id lease.Owner, name string) {
	s.do("INSERT INTO {rowlock_party} (id, phase, party, counted_at) VALUES (?, 1, ?, {now})", id[:], []byte(name))
}

func (s *scene) state(state int) {
	s.do("UPDATE {rowlock_latch} SET state = ? WHERE {key} = ?", state, []byte("b"))
}

func (s *scene) expired() {
	s.do("UPDATE {rowlock_latch} SET expires_at = {now} - {second} WHERE {key} = ?", []byte("b"))
}

// reset is what other processes do that begin the next generation, and enter it.
func (s *scene) reset() {
	s.do("UPDATE {rowlock_latch} SET id = ?, generation = 2 WHERE {key} = ?", next[:], []byte("b"))
	s.do("UPDATE {rowlock_party} SET id = ? WHERE id = ?", next[:], ours[:])
}

// rows are all rows as text.
func (s *scene) rows() (text string) {
	s.tb.Helper()
	for _, query := range []string{
		"SELECT {key}, id, generation, parties * 10 + state, made_at, expires_at FROM {rowlock_latch} ORDER BY 1",
		"SELECT party, id, 0, phase, counted_at, alive_until FROM {rowlock_party} ORDER BY 2, 4, 1",
	} {
		found, err := s.DB.QueryContext(context.Background(), s.SQL(query))
		ok(s.tb, err)
		for found.Next() {
			var name, id []byte
			var generation, state int
			var made, ends any
			ok(s.tb, found.Scan(&name, &id, &generation, &state, &made, &ends))
			text += fmt.Sprintf("%s %x: %d %d %v %v\n", name, id[:1], generation, state, made, ends)
		}
		ok(s.tb, found.Err())
	}
	return text
}

// write is a write to b that is in order once ready has run, and how b is when it is not.
type write struct {
	name  string
	kind  int
	ready func(s *scene)
	do    func(ctx context.Context, s *scene) (bool, error)
	// refuses are what another process does before it.
	refuses map[string]func(s *scene)
}

// stepped runs a step of the barrier, and reports whether it has moved.
func stepped(section string) func(context.Context, *scene) (bool, error) {
	return func(ctx context.Context, s *scene) (bool, error) {
		before := s.rows()
		_, err := s.row.Step(section).Run(ctx, s.on, s.Dialect)
		return s.rows() != before, err
	}
}

func in(state int) func(*scene) { return func(s *scene) { s.state(state) } }

func (s *scene) without(name string) {
	s.do("DELETE FROM {rowlock_party} WHERE id = ? AND party = ?", ours[:], []byte(name))
}

func TestEachWriteOfALatchDecidesForItself(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for _, w := range writes {
			t.Run(w.name, func(t *testing.T) {
				s := r.scene(t, w.kind)
				w.ready(s)
				if did, err := w.do(t.Context(), s); err != nil || !did {
					t.Errorf("it is in order: %t, %v", did, err)
				}
				for name, come := range w.refuses {
					s := r.scene(t, w.kind)
					w.ready(s)
					come(s)
					before := s.rows()
					did, err := w.do(t.Context(), s)
					if now := s.rows(); err != nil || did || now != before {
						t.Errorf("%s: it was written to: %t, %v\n%s\n%s", name, did, err, before, now)
					}
				}
			})
		}
	})
}

// A latch counts its own parties, and a sweep removes it only once it has expired.
func TestALatchCountsItsOwnPartiesAndStaysUntilItExpires(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		s := r.scene(t, rows.Latches)
		s.party(ours, "p", true)
		s.party(theirs, "p", true)
		s.party(theirs, "q", true)
		s.left(ours, "q")
		v, err := rows.LookAt(s.Dialect, s.row, func(query string, args []any, dest ...any) error {
			return s.on.QueryRow(t.Context(), query, args, dest...)
		})
		if err != nil || v.Counted != 1 {
			t.Errorf("%+v, %v; want one party counted", v, err)
		}
		for want, before := range []func(){func() {}, s.expired} {
			before()
			n, err := rows.Sweep(t.Context(), s.on, s.Dialect, 10)
			if left := r.count(t, "SELECT COUNT(*) FROM {rowlock_latch}"); err != nil || int(n) != want || left != 2-want {
				t.Errorf("a sweep has removed %d latches and left %d: %v", n, left, err)
			}
		}
	})
}
