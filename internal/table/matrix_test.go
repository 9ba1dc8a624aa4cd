package table_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A call to the store is a handful of operations of the driver. The matrix learns which, and then breaks each of them in
// every way, one way a cell: the call must come to the outcome it would have had, and leave on the server what it would have
// left.

// deed is a kind of call to the store.
type deed struct {
	name string
	// recycle names the call that starts a new session beforehand; see rig.recycle.
	recycle string
	// begin puts the key into the state the deed needs, and returns the call and what must be true after it.
	begin func(c *cell) act
}

// act is a call under way.
type act struct {
	do    func(ctx context.Context) error
	check func()
}

// cell is one deed with one fault.
type cell struct {
	testing.TB
	*rig
	key  string
	hit  faultdb.Op    // what the fault hit; the zero Op where there was none
	late *faultdb.Gate // holds what was sent late; nil if nothing was
	// lateFree says that what was sent late comes when the lease has been given back, not while it is held.
	lateFree bool
	// unresolved says that an earlier call failed, and may have done the deed.
	unresolved bool
}

// phase is how an operation is broken.
type phase struct {
	name     string
	fault    func(g *faultdb.Gate) faultdb.Fault
	lateFree bool
	late     bool
}

var phases = []phase{
	{name: "never sent", fault: func(*faultdb.Gate) faultdb.Fault { return faultdb.FailBeforeSend() }},
	{name: "reply lost", fault: func(*faultdb.Gate) faultdb.Fault { return faultdb.LoseReply() }},
	{name: "sent late", fault: faultdb.SendLate, late: true},
	{name: "sent after the release", fault: faultdb.SendLate, late: true, lateFree: true},
}

// What a driver says of a broken connection. On the first, database/sql would run the statement again; see hazard H5.
var reports = []struct {
	name string
	err  error
}{
	{"ErrBadConn", driver.ErrBadConn},
	{"ErrUnexpectedEOF", io.ErrUnexpectedEOF},
}

func TestAReplyLostAfterExecutionEndsInAtMostOneGrantAndNoGhost(t *testing.T) {
	var total atomic.Int64
	t.Run("databases", func(t *testing.T) {
		testdb.Each(t, func(t *testing.T, e *testdb.Env) {
			began := time.Now()
			var cells atomic.Int64
			t.Run("deeds", func(t *testing.T) { runDeeds(t, e, &cells) })
			t.Logf("%s: %d cells in %s", e.Name, cells.Load(), time.Since(began).Round(time.Millisecond))
			total.Add(cells.Load())
		})
	})
	t.Logf("%d cells", total.Load())
}

func runDeeds(t *testing.T, e *testdb.Env, cells *atomic.Int64) {
	for _, strategy := range []dialect.Strategy{dialect.Update, dialect.Insert} {
		list := acquisitions
		if strategy == dialect.Update {
			list = append(list, others...)
		}
		for _, d := range list {
			t.Run(fmt.Sprintf("%s/%s", strategy, d.name), func(t *testing.T) {
				t.Parallel()
				if d.name == "sweep" {
					e = e.Kind.Open(t) // it looks at every row of a table
				}
				m := matrix{TB: t, rig: newRig(t, e, strategy, 1), deed: d, cells: cells}
				m.single(t)
				m.double(t)
				m.lasting(t)
			})
		}
	}
}

// matrix is all cells of one deed, one after the other on one lane.
type matrix struct {
	testing.TB
	*rig
	deed  deed
	cells *atomic.Int64
	n     int
}

var keys atomic.Int64

func (m *matrix) cell(t testing.TB) *cell {
	m.recycle(t, m.deed.recycle)
	return &cell{TB: t, rig: m.rig, key: fmt.Sprintf("%s/%d", m.deed.name, keys.Add(1))}
}

// learn returns the driver's operations from the from-th on, where inj breaks an earlier one.
func (m *matrix) learn(inj faultdb.Injector, from int) []faultdb.Op {
	c := m.cell(m)
	a := m.deed.begin(c)
	m.log.Reset()
	m.faults.set(inj)
	err := a.do(m.Context())
	m.faults.set(nil)
	ops := m.log.Ops()
	if err != nil {
		m.Fatalf("%s: %v", m.deed.name, err)
	}
	a.check()
	return ops[from:]
}

func label(n int, op faultdb.Op) string {
	return fmt.Sprintf("%d %s", n, strings.Join(strings.Fields(op.Kind.String() + " " + op.Query)[:1], " "))
}

// single breaks one operation.
func (m *matrix) single(t *testing.T) {
	for i, op := range m.learn(nil, 0) {
		for _, p := range phases {
			for _, r := range reports {
				if p.lateFree && !op.Executes() || p.lateFree && m.inTx(op) {
					continue // the same as "sent late", which waits for what it needs
				}
				t.Run(fmt.Sprintf("%s/%s/%s", label(i+1, op), p.name, r.name), func(t *testing.T) {
					m.cells.Add(1)
					m.run(t, p, func(f faultdb.Fault) faultdb.Injector { return faultdb.Nth(int64(i)+1, f.Reporting(r.err)) })
				})
			}
		}
	}
}

// double breaks the first statement, and then one of the operations by which the store recovers: dialling, settings,
// preparing, and the statement itself.
func (m *matrix) double(t *testing.T) {
	ops := m.learn(nil, 0)
	first := firstExecution(ops)
	recovery := m.learn(faultdb.Nth(int64(first)+1, faultdb.FailBeforeSend()), first+1)
	for i, op := range recovery {
		for _, p := range phases[:2] {
			t.Run(fmt.Sprintf("again/%s/%s", label(i+1, op), p.name), func(t *testing.T) {
				m.cells.Add(1)
				m.run(t, p, func(f faultdb.Fault) faultdb.Injector {
					return faultdb.Any(faultdb.Nth(int64(first)+1, faultdb.LoseReply()), faultdb.Nth(int64(first+i)+2, f))
				})
			})
		}
	}
}

func firstExecution(ops []faultdb.Op) int {
	for i, op := range ops {
		if op.Executes() {
			return i
		}
	}
	return 0
}

// run is one cell in which the call must succeed.
func (m *matrix) run(t *testing.T, p phase, inj func(faultdb.Fault) faultdb.Injector) {
	c := m.cell(t)
	gate := faultdb.NewGate()
	defer gate.Wait()
	defer gate.Release()
	fault := p.fault(gate)
	if p.late {
		c.late, c.lateFree = gate, p.lateFree
	}
	a := m.deed.begin(c)
	counted := faultdb.NewCounter(inj(fault))
	var began atomic.Int64 // the transaction's connection
	m.faults.set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		if op.Kind == faultdb.Begin {
			began.Store(op.Conn)
		}
		f := counted.Inject(op)
		switch {
		case !f.IsNone():
			c.hit = op
		case c.hit.Conn != 0 && c.hit.Conn == began.Load() && op.Kind == faultdb.Connect:
			gate.Release() // what is open on the server has rows locked: let it end while we try again
		}
		return f
	}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := a.do(ctx)
	m.faults.set(nil)
	if err != nil {
		t.Fatalf("after %s of %s: %v", p.name, c.hit.Kind, err)
	}
	if counted.Faults() == 0 {
		t.Fatal("no fault was injected")
	}
	a.check()
}

// lasting breaks every operation of a kind until the call gives up. It says so, says whether anything may have been done,
// and the same call resolves it when the trouble is over.
func (m *matrix) lasting(t *testing.T) {
	executions := func(f faultdb.Fault) faultdb.Injector { return faultdb.OnFunc(faultdb.Op.Executes, faultdb.Always(f)) }
	troubles := []struct {
		name    string
		inj     faultdb.Injector
		unknown bool
	}{
		{"no statement is sent", executions(faultdb.FailBeforeSend()), true},
		{"every reply is lost", executions(faultdb.LoseReply()), true},
		{"every reply is lost, ErrBadConn", executions(faultdb.LoseReply().Reporting(driver.ErrBadConn)), true},
		{"nothing can be prepared", faultdb.OnKind(faultdb.Always(faultdb.FailBeforeSend()), faultdb.Prepare), false},
	}
	for _, trouble := range troubles {
		t.Run("lasting/"+trouble.name, func(t *testing.T) {
			m.cells.Add(1)
			c := m.cell(t)
			a := m.deed.begin(c)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			m.faults.set(trouble.inj)
			err := a.do(ctx)
			m.faults.set(nil)
			if err == nil || ctx.Err() != nil || errors.Is(err, lease.ErrUnknown) != trouble.unknown {
				t.Fatalf("got error %v; is it to say that the outcome is unknown: %t", err, trouble.unknown)
			}
			c.unresolved = trouble.unknown
			if err := a.do(ctx); err != nil {
				t.Fatalf("when the trouble was over: %v", err)
			}
			a.check()
		})
	}
}

// inTx reports whether op is part of a transaction.
func (m *matrix) inTx(op faultdb.Op) bool {
	return m.deed.name == "sweep" || m.Driver == "mysql" && strings.HasPrefix(m.deed.name, "renew")
}

// arrive lets what was sent late be executed now, if it was to be executed at this time.
func (c *cell) arrive(free bool) {
	if c.late != nil && c.lateFree == free {
		c.late.Release()
		c.late.Wait()
	}
}
