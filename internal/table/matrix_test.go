package table_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A call to the store is a handful of operations of the driver. The matrix learns which, and then
// breaks each of them in every way, one way a cell: the call must come to the outcome it would have
// had, and leave on the server what it would have left.

// deed is a kind of call to the store.
type deed struct {
	name string
	// recycle names the call that starts a new session beforehand; see rig.recycle.
	recycle string
	// able says whether the store can do it at all; nil: it can.
	able func(tb testing.TB, s *table.Store) bool
	// begin puts the key into the state the deed needs, and returns the call and what must be
	// true after it.
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
	deed string        // its name, where that matters
	late *faultdb.Gate // holds what was sent late; nil if nothing was
	// lateFree says that what was sent late comes when the lease has been given back, not while
	// it is held.
	lateFree bool
	// unresolved says that an earlier call failed, and may have done the deed.
	unresolved bool

	mu        sync.Mutex
	hit       []faultdb.Op // what faults hit
	uncertain bool
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

// What a driver says of a broken connection. On the first, database/sql would run the statement
// again; see hazard H5.
var reports = []struct {
	name string
	err  error
}{
	{"ErrBadConn", driver.ErrBadConn},
	{"ErrUnexpectedEOF", io.ErrUnexpectedEOF},
}

func TestAReplyLostAfterExecutionEndsInAtMostOneGrantAndNoGhost(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	every := race.Few(23, 5) // one cell of so many: no multiple of the faults of an operation
	if testdb.Whole() {
		every = 1
	}
	t.Run("databases", func(t *testing.T) {
		testdb.Each(t, func(t *testing.T, e *testdb.Env) {
			began := time.Now()
			var cells atomic.Int64
			t.Run("deeds", func(t *testing.T) { runDeeds(t, e, &cells, every) })
			t.Logf("%s: %d cells in %s", e.Name, cells.Load(), time.Since(began).Round(time.Millisecond))
			total.Add(cells.Load())
		})
	})
	t.Logf("%d cells", total.Load())
}

// stall is less than a pinned connection's timeout: a call that takes so long after one fault was
// not told of it.
const stall = 4 * time.Second

func runDeeds(t *testing.T, e *testdb.Env, cells *atomic.Int64, every int) {
	for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
		list := acquisitions
		if strategy == adapter.Update {
			list = slices.Concat(list, others, queueing, []deed{together, anyOf, departure, homecoming})
		}
		for _, d := range list {
			t.Run(fmt.Sprintf("%s/%s", strategy, d.name), func(t *testing.T) {
				t.Parallel()
				e := e
				if d.name == "sweep" || e.Name == "sqlite" {
					e = e.Kind.Open(t) // a sweep looks at every row of a table, and SQLite's file has one writer
				}
				m := matrix{TB: t, rig: newRig(t, e, strategy, 1), deed: d, cells: cells, every: every, seen: rand.IntN(every)}
				if d.able != nil && !d.able(t, m.clean) {
					t.Skip("the dialect cannot do it")
				}
				m.single(t)
				m.double(t)
				m.lasting(t)
			})
		}
	}
}

// matrix is all cells of one deed, one after the other on one pinned connection.
type matrix struct {
	testing.TB
	*rig
	deed  deed
	cells *atomic.Int64
	every int // cells, of which one is tried
	seen  int
}

// tries counts a cell that is to be tried. Each run tries others; `make conformance` tries all.
func (m *matrix) tries() bool {
	if m.seen++; m.seen%m.every != 0 {
		return false
	}
	m.cells.Add(1)
	return true
}

var keys atomic.Int64

func (m *matrix) cell(t testing.TB) *cell {
	m.recycle(t, m.deed.recycle)
	return &cell{TB: t, rig: m.rig, key: fmt.Sprintf("%s/%d", m.deed.name, keys.Add(1)), deed: m.deed.name}
}

// learn returns the driver's operations from the from-th on, where inj breaks an earlier one.
func (m *matrix) learn(inj faultdb.Injector, from int) []faultdb.Op {
	c := m.cell(m)
	a := m.deed.begin(c)
	m.log.Reset()
	c.arm(inj, nil)
	err := a.do(m.Context())
	m.faults.Set(nil)
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
	for i, op := range m.learn(faultdb.Always(faultdb.None), 0) {
		for _, p := range phases {
			for n, r := range reports {
				if p.lateFree && (!op.Executes() || m.inTx()) {
					continue // the same as "sent late", which waits for what it needs
				}
				if !op.Executes() && n != i%len(reports) {
					continue // what is said of an operation that executes nothing makes no difference
				}
				if !m.tries() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", label(i+1, op), p.name, r.name), func(t *testing.T) {
					m.run(t, p, func(f faultdb.Fault) faultdb.Injector { return faultdb.Nth(int64(i)+1, f.Reporting(r.err)) })
				})
			}
		}
	}
}

// double breaks the first statement, and then one of the operations by which the store recovers:
// dialling, settings, preparing, and the statement itself.
func (m *matrix) double(t *testing.T) {
	ops := m.learn(faultdb.Always(faultdb.None), 0)
	first := firstExecution(ops)
	recovery := m.learn(faultdb.Nth(int64(first)+1, faultdb.FailBeforeSend()), first+1)
	for i, op := range recovery {
		for _, p := range phases[:2] {
			if !m.tries() {
				continue
			}
			t.Run(fmt.Sprintf("again/%s/%s", label(i+1, op), p.name), func(t *testing.T) {
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

// run is one cell in which the call must succeed. One that was told of no fault is late each time,
// and a machine that has other work is not.
func (m *matrix) run(t *testing.T, p phase, inj func(faultdb.Fault) faultdb.Injector) {
	m.runAgain(t, p, inj, 1)
}

func (m *matrix) runAgain(t *testing.T, p phase, inj func(faultdb.Fault) faultdb.Injector, tries int) {
	c := m.cell(t)
	gate := faultdb.NewGate()
	defer gate.Wait()
	defer gate.Release()
	if p.late {
		c.late, c.lateFree = gate, p.lateFree
	}
	a := m.deed.begin(c)
	c.arm(inj(p.fault(gate)), gate)
	wait := patience
	if !p.late {
		wait = stall
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	err := a.do(ctx)
	m.faults.Set(nil)
	if err != nil && ctx.Err() != nil && !p.late && tries < 5 {
		m.runAgain(t, p, inj, tries+1)
		return
	}
	if err != nil {
		t.Fatalf("after %s of %v: %v", p.name, c.hits(), err)
	}
	if len(c.hits()) == 0 {
		t.Fatal("no fault was injected")
	}
	a.check()
}

// arm injects from now on, and remembers what was hit. What is sent late within a transaction has
// rows locked until it is executed and its connection gone; late is released for it when the store
// goes on by another connection, which would else wait for those rows until its time is over.
func (c *cell) arm(inj faultdb.Injector, late *faultdb.Gate) {
	// Their connections: of the last one, and of one that can still be rolled back.
	var transaction, open int64
	c.faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case begins(op) && len(c.hit) == 0:
			transaction, open = op.Conn, op.Conn
		case slices.Contains([]string{"COMMIT", "ROLLBACK"}, op.Query) || op.Kind == faultdb.Commit || op.Kind == faultdb.Rollback:
			open = 0
		}
		f := inj.Inject(op)
		switch {
		case !f.IsNone():
			c.hit = append(c.hit, op)
			c.uncertain = c.uncertain || op.Executes() && op.Conn != open
		case late != nil && len(c.hit) > 0 && c.hit[0].Conn == transaction && op.Conn != transaction:
			late.Release()
		}
		return f
	}))
}

// begins reports whether op begins a transaction. Each dialect says how in words of its own.
func begins(op faultdb.Op) bool {
	return op.Kind == faultdb.Begin || strings.HasPrefix(op.Query, "BEGIN") || strings.HasPrefix(op.Query, "START TRANSACTION")
}

// doubt reports whether a fault hit a statement: then it is unknown at first whether it was
// executed, unless a transaction was to be committed after it.
func (c *cell) doubt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uncertain
}

func (c *cell) hits() []faultdb.Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.hit)
}

// lasting breaks every operation of a kind until the call gives up. It says so, says whether
// anything may have been done, and the same call resolves it when the trouble is over.
func (m *matrix) lasting(t *testing.T) {
	executions := func(f faultdb.Fault) faultdb.Injector {
		return faultdb.OnFunc(func(op faultdb.Op) bool {
			// What sets how a release is committed is no statement that may have been applied.
			return op.Executes() && !begins(op) && !strings.HasPrefix(op.Query, "PRAGMA")
		}, faultdb.Always(f))
	}
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
		if !m.tries() {
			continue
		}
		t.Run("lasting/"+trouble.name, func(t *testing.T) {
			c := m.cell(t)
			a := m.deed.begin(c)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			m.faults.Set(trouble.inj)
			err := a.do(ctx)
			m.faults.Set(nil)
			// A transaction that broke before its commit was sent is known not to have
			// been committed.
			unknown := trouble.unknown && (m.deed.name == "sweep" || !m.inTx())
			if err == nil || ctx.Err() != nil || errors.Is(err, lease.ErrUnknown) != unknown {
				t.Fatalf("got error %v; is it to say that the outcome is unknown: %t", err, unknown)
			}
			c.unresolved = unknown
			if err := a.do(ctx); err != nil {
				t.Fatalf("when the trouble was over: %v", err)
			}
			a.check()
		})
	}
}

// inTx reports whether the deed is done in a transaction.
func (m *matrix) inTx() bool {
	return m.deed.name == "sweep" || m.Driver == "sqlite" && strings.HasPrefix(m.deed.name, "pass")
}

// arrive lets what was sent late be executed now, if it was to be executed at this time.
func (c *cell) arrive(free bool) {
	if c.late != nil && c.lateFree == free {
		c.late.Release()
		c.late.Wait()
	}
}
