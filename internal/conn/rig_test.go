package conn_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
)

// patience bounds every wait for something that is certain to happen.
const patience = 20 * time.Second

// dialer makes connections that can do nothing but be opened and closed: what runs on a connection
// is the test's own function.
type dialer struct {
	mu                     sync.Mutex
	fail                   error // what the next dialling returns, if not nil
	after                  int   // how many more succeed before it does
	dialed, opened, closed atomic.Int64
	pings                  atomic.Int64
	cut                    atomic.Bool // what was dialed before answers no ping
}

func (d *dialer) Connect(context.Context) (driver.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dialed.Add(1)
	if d.fail != nil && d.after == 0 {
		return nil, d.fail
	}
	d.after = max(0, d.after-1)
	d.opened.Add(1)
	return &bareConn{d, d.cut.Load()}, nil
}

// failAfter has dialling fail with err once n more connections were made; nil heals it.
func (d *dialer) failAfter(n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail, d.after = err, n
}

func (d *dialer) Driver() driver.Driver { return nil }

type bareConn struct {
	d     *dialer
	after bool // it was dialed after the cut
}

var errNothing = errors.New("this connection can do nothing")

func (*bareConn) Prepare(string) (driver.Stmt, error) { return nil, errNothing }
func (*bareConn) Begin() (driver.Tx, error)           { return nil, errNothing }
func (c *bareConn) Close() error                      { c.d.closed.Add(1); return nil }

// Ping waits for an answer that does not come if a network has swallowed the connection.
func (c *bareConn) Ping(ctx context.Context) error {
	c.d.pings.Add(1)
	if !c.d.cut.Load() || c.after {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// body is what the tests' ops carry: a name, and what a connection does when it gets there.
type body struct {
	name   string
	run    func(context.Context) error
	answer string
}

type (
	op      = conn.Op[body]
	session = conn.Session
)

// rig is a set of connections over a dialer, with a record of what ran.
type rig struct {
	testing.TB
	*conn.Set[body]
	dialer *dialer
	db     *sql.DB
	conns  int
	setups atomic.Int64
	before func() // each time that ops are run; may be nil

	mu      sync.Mutex
	ran     []string
	session map[string]*conn.Session
	batches [][]string
}

// newRig opens connections and closes them with the test; change may alter the configuration.
func newRig(tb testing.TB, conns int, change func(*conn.Config[body])) *rig {
	tb.Helper()
	r := &rig{TB: tb, conns: conns, dialer: &dialer{}, session: make(map[string]*conn.Session)}
	r.db = sql.OpenDB(r.dialer)
	tb.Cleanup(func() { _ = r.db.Close() })
	cfg := r.config(conns)
	if change != nil {
		change(&cfg)
	}
	set, err := conn.Open(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	r.Set = set
	tb.Cleanup(set.Close)
	return r
}

func (r *rig) config(conns int) conn.Config[body] {
	return conn.Config[body]{
		DB: r.db, Conns: conns, Timeout: patience,
		Setup:    func(context.Context, *conn.Session) error { r.setups.Add(1); return nil },
		Together: r.run, Good: func(err error) bool { return !oneline.Is(err, errBroken, context.DeadlineExceeded) },
	}
}

func newOp(kind conn.Kind, b body) *op { return conn.NewOp(kind, b, nil) }

// Do and Go have an op that runs alone recorded as a batch of one.
func (r *rig) Do(ctx context.Context, o *op) error {
	if o.Run == nil { // or a connection has it already
		o.Run = r.one
	}
	return r.Set.Do(ctx, o)
}

func (r *rig) Go(o *op) bool {
	o.Run = r.one
	return r.Set.Go(o)
}

func (r *rig) one(ctx context.Context, s *conn.Session, o *op) error {
	r.run(ctx, s, []*op{o})
	return o.Err
}

func (r *rig) run(ctx context.Context, s *conn.Session, ops []*op) bool {
	if r.before != nil {
		r.before()
	}
	names := make([]string, len(ops))
	for i, o := range ops {
		names[i] = o.Body.name
	}
	r.mu.Lock()
	r.ran = append(r.ran, names...)
	r.batches = append(r.batches, names)
	for _, n := range names {
		r.session[n] = s
	}
	r.mu.Unlock()
	good := true
	for _, o := range ops {
		if o.Body.run != nil {
			o.Err = o.Body.run(ctx)
		}
		o.Body.answer = "answer to " + o.Body.name
		good = good && !errors.Is(o.Err, errBroken)
	}
	return good
}

// errBroken is the error that costs a connection its connection.
var errBroken = errors.New("connection broken")

func (r *rig) order() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ran)
}

// on returns the session an op ran on.
func (r *rig) on(name string) *conn.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.session[name]
}

// quick makes an op that ends at once.
func quick(kind conn.Kind, name string) *op { return newOp(kind, body{name: name}) }

// held is an op that tells when it is running and goes on when it is let go.
type held struct {
	*op
	running chan struct{}
	letGo   chan struct{}
}

func hold(kind conn.Kind, name string) *held {
	h := &held{running: make(chan struct{}), letGo: make(chan struct{})}
	h.op = newOp(kind, body{name: name, run: func(context.Context) error {
		close(h.running)
		<-h.letGo
		return nil
	}})
	return h
}

// occupy has a connection run an op that stays there until let go, and returns when it is there.
func (r *rig) occupy(kind conn.Kind, name string) *held {
	r.Helper()
	h := hold(kind, name)
	if !r.Go(h.op) {
		r.Fatal("the set is closed")
	}
	r.wait(h.running, name+" to run")
	return h
}

func (r *rig) wait(c <-chan struct{}, what string) {
	r.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		r.Fatalf("waited in vain for %s", what)
	}
}

// do runs an op to its end.
func (r *rig) do(o *op) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Do(ctx, o); err != nil {
		r.Fatalf("%s: %v", o.Body.name, err)
	}
}

// leaving is a context that ends the moment a caller waits for it: Do asks for Done after it has
// submitted the op, so that the op is pending, or further, when its caller leaves.
type leaving struct {
	context.Context
	cancel context.CancelFunc
}

func leaveOnceSubmitted() leaving {
	ctx, cancel := context.WithCancel(context.Background())
	return leaving{ctx, cancel}
}

func (l leaving) Done() <-chan struct{} {
	l.cancel()
	return l.Context.Done()
}

func (r *rig) wantIs(err error, targets ...error) {
	r.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			r.Errorf("got error %v, want %v", err, target)
		}
	}
}

// wantBatches compares what was run together, with blanks between the names.
func (r *rig) wantBatches(want ...string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := make([]string, len(r.batches))
	for i, names := range r.batches {
		got[i] = strings.Join(names, " ")
	}
	if !slices.Equal(got, want) {
		r.Errorf("ran %q, want %q", got, want)
	}
}

func (r *rig) wantOrder(want ...string) {
	r.Helper()
	if got := r.order(); !slices.Equal(got, want) {
		r.Errorf("ran %q, want %q", got, want)
	}
}
