package faultdb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
)

var (
	update  = faultdb.Op{Kind: faultdb.Exec, Query: "UPDATE t"}
	prepare = faultdb.Op{Kind: faultdb.Prepare, Query: "UPDATE t"}
	commit  = faultdb.Op{Kind: faultdb.Commit}
)

// hits returns for which of the operations, counted from 0, inj has a fault.
func hits(inj faultdb.Injector, ops ...faultdb.Op) []int {
	var at []int
	for i, op := range ops {
		if !inj.Inject(op).IsNone() {
			at = append(at, i)
		}
	}
	return at
}

func TestInjectors(t *testing.T) {
	cut := faultdb.FailBeforeSend()
	cases := []struct {
		name string
		inj  faultdb.Injector
		want []int
	}{
		{"Always", faultdb.Always(cut), []int{0, 1, 2, 3, 4}},
		{"Nth hits once", faultdb.Nth(2, cut), []int{1}},
		{"Nth behind a match counts matches", faultdb.OnMatch("UPDATE", faultdb.Nth(2, cut)), []int{3}},
		{"OnMatch leaves preparations alone", faultdb.OnMatch("UPDATE", faultdb.Always(cut)), []int{1, 3}},
		{"OnKind", faultdb.OnKind(faultdb.Always(cut), faultdb.Prepare, faultdb.Commit), []int{0, 2, 4}},
		{"Any takes what there is", faultdb.Any(faultdb.Nth(1, cut), faultdb.Nth(5, cut)), []int{0, 4}},
		{"Any of nothing", faultdb.Any(), nil},
		{"an error alone is no fault", faultdb.Always(faultdb.None.Reporting(driver.ErrBadConn)), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := hits(c.inj, prepare, update, commit, update, prepare); !slices.Equal(got, c.want) {
				t.Errorf("faults at %v, want %v", got, c.want)
			}
		})
	}
}

func TestAnyAsksEveryInjector(t *testing.T) {
	var log faultdb.Log
	inj := faultdb.Any(faultdb.Always(faultdb.FailBeforeSend()), &log)
	hits(inj, update, commit)
	if got := log.Count(nil); got != 2 {
		t.Errorf("the log behind a fault saw %d operations, want 2", got)
	}
}

func TestToggle(t *testing.T) {
	toggle := faultdb.NewToggle(faultdb.Nth(1, faultdb.LoseReply()))
	if got := hits(toggle, update); got != nil {
		t.Error("a new toggle is on")
	}
	toggle.On()
	if got := hits(toggle, update, update); !slices.Equal(got, []int{0}) {
		t.Errorf("faults at %v: the Nth counted while it was off", got)
	}
	toggle.Off()
	if got := hits(toggle, update); got != nil {
		t.Error("it does not switch off")
	}
}

func TestRandomlyRepeatsItself(t *testing.T) {
	ops := slices.Repeat([]faultdb.Op{update}, 1000)
	one := hits(faultdb.Randomly(0.1, 7, faultdb.LoseReply()), ops...)
	two := hits(faultdb.Randomly(0.1, 7, faultdb.LoseReply()), ops...)
	if !slices.Equal(one, two) {
		t.Error("the same seed gave other faults")
	}
	if len(one) < 50 || len(one) > 200 {
		t.Errorf("%d faults in 1000 at one in ten", len(one))
	}
}

func TestNthBelowOnePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it waits for an operation that never comes")
		}
	}()
	faultdb.Nth(0, faultdb.None)
}

func TestAndKeepsBothParts(t *testing.T) {
	b, gate := newBed(t, servers[0]), faultdb.NewGate()
	mine := errors.New("mine")
	fault := faultdb.LoseReply().Reporting(mine).And(faultdb.Block(gate)).And(faultdb.DelayAfter(time.Nanosecond))
	done := b.run(t.Context(), executions[0], first(fault))
	<-gate.Arrived()
	b.wantCount(0)
	gate.Release()
	wantIs(t, <-done, mine)
	b.wantCount(1)
}

func TestLog(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		b := newBed(t, s)
		var log faultdb.Log
		db := b.open(&log)
		wantIs(t, db.PingContext(t.Context()), nil)
		wantKinds(t, &log, faultdb.Connect, faultdb.Ping)

		log.Reset()
		tx := begin(t, db)
		_, err := tx.ExecContext(t.Context(), b.bump())
		wantIs(t, err, nil)
		wantIs(t, prepareAndRun(t.Context(), tx, b.bumpBy()), nil)
		wantIs(t, tx.Commit(), nil)
		wantKinds(t, &log, faultdb.Begin, faultdb.Exec, faultdb.Prepare, faultdb.Exec, faultdb.Commit)
		if got, want := log.Queries(), []string{b.bump(), b.bumpBy()}; !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
		last := int64(0)
		for _, op := range log.Ops() {
			if op.Conn != 1 || op.N <= last {
				t.Errorf("%+v: on connection 1, with a number above %d?", op, last)
			}
			last = op.N
		}
		if got := log.Count(func(op faultdb.Op) bool { return op.Prepared }); got != 1 {
			t.Errorf("%d prepared executions, want 1", got)
		}
	})
}

func prepareAndRun(ctx context.Context, tx *sql.Tx, query string) error {
	s, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.ExecContext(ctx, 1)
	return err
}

// An execution that the driver has to prepare for is asked about once, and its preparation once.
func TestLogOfADriverThatSkips(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		b := newBed(t, s)
		var log faultdb.Log
		conn := b.conn(&log)
		log.Reset()
		_, err := conn.ExecContext(t.Context(), b.bumpBy(), 1)
		wantIs(t, err, nil)
		want := []faultdb.Kind{faultdb.Exec}
		if s.driver == "mysql" {
			want = append(want, faultdb.Prepare)
		}
		wantKinds(t, &log, want...)
	})
}

func wantKinds(t *testing.T, log *faultdb.Log, want ...faultdb.Kind) {
	t.Helper()
	var got []faultdb.Kind
	for _, op := range log.Ops() {
		got = append(got, op.Kind)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
}

func TestKindString(t *testing.T) {
	if got := faultdb.Rollback.String() + " " + faultdb.Kind(99).String(); got != "rollback unknown" {
		t.Errorf("got %q", got)
	}
}
