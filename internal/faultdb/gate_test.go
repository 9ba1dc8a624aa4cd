package faultdb_test

import (
	"context"
	"database/sql/driver"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// run executes in a goroutine, so that the test can look at the server meanwhile.
func (b *bed) run(ctx context.Context, e execution, inj faultdb.Injector) <-chan error {
	conn, done := b.conn(inj), make(chan error, 1)
	go func() { done <- e.run(ctx, b, conn) }()
	return done
}

func wantHeld(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("the caller was answered with %v while the gate was closed", err)
	default:
	}
}

func TestGate(t *testing.T) {
	cases := []struct {
		name             string
		fault            func(*faultdb.Gate) faultdb.Fault
		atGate, released int
		err              error
	}{
		{"Block holds the operation", faultdb.Block, 0, 1, nil},
		{"BlockAfter holds the reply", faultdb.BlockAfter, 1, 1, nil},
		{"a held reply can be lost", func(g *faultdb.Gate) faultdb.Fault {
			return faultdb.BlockAfter(g).And(faultdb.LoseReply())
		}, 1, 1, faultdb.ErrCut},
		{"a held operation can be cut", func(g *faultdb.Gate) faultdb.Fault {
			return faultdb.Block(g).And(faultdb.FailBeforeSend())
		}, 0, 0, faultdb.ErrCut},
	}
	onEach(t, func(t *testing.T, s server) {
		for _, c := range cases {
			for _, e := range executions {
				t.Run(c.name+"/"+e.name, func(t *testing.T) {
					b, gate := newBed(t, s), faultdb.NewGate()
					done := b.run(t.Context(), e, first(c.fault(gate)))
					<-gate.Arrived()
					b.wantCount(c.atGate)
					wantHeld(t, done)
					gate.Release()
					wantIs(t, <-done, c.err)
					b.wantCount(c.released)
				})
			}
		}
	})
}

func TestACallerWhoGivesUpAtTheGate(t *testing.T) {
	cases := []struct {
		name  string
		fault func(*faultdb.Gate) faultdb.Fault
		count int
	}{
		{"before sending", faultdb.Block, 0},
		{"before the reply", faultdb.BlockAfter, 1},
	}
	onEach(t, func(t *testing.T, s server) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				b, gate := newBed(t, s), faultdb.NewGate()
				ctx, cancel := context.WithCancel(t.Context())
				conn, done := b.conn(first(c.fault(gate))), make(chan error, 1)
				go func() { done <- executions[0].run(ctx, b, conn) }()
				<-gate.Arrived()
				cancel()
				wantIs(t, <-done, context.Canceled)
				gate.Release()
				b.wantCount(c.count)
				wantIs(t, executions[0].run(t.Context(), b, conn), driver.ErrBadConn) // it was cut
				b.wantCount(c.count)
			})
		}
	})
}

// The ghost of H7: the caller has long been told that it failed.
func TestSendLate(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for _, e := range executions {
			t.Run(e.name, func(t *testing.T) {
				b, gate := newBed(t, s), faultdb.NewGate()
				conn := b.conn(first(faultdb.SendLate(gate)))
				var inner any
				wantIs(t, conn.Raw(func(c any) error { inner = faultdb.Real(c); return nil }), nil)
				ctx, giveUp := context.WithCancel(t.Context())
				wantIs(t, e.run(ctx, b, conn), faultdb.ErrCut)
				giveUp()
				if op := <-gate.Arrived(); !op.Executes() {
					t.Errorf("%v arrived at the gate", op)
				}
				b.wantCount(0)
				gate.Release()
				gate.Wait()
				b.wantCount(1)
				wantClosed(t, inner)
			})
		}
	})
}

func TestGateAnnouncesEveryArrivalOnce(t *testing.T) {
	b, gate := newBed(t, servers[0]), faultdb.NewGate()
	inj := faultdb.OnMatch("UPDATE", faultdb.Always(faultdb.Block(gate)))
	const callers = 5
	var done [callers]<-chan error
	for i := range done {
		done[i] = b.run(t.Context(), executions[0], inj)
	}
	for range callers {
		<-gate.Arrived()
	}
	gate.Release()
	gate.Release() // harmless
	for _, d := range done {
		wantIs(t, <-d, nil)
	}
	select {
	case op := <-gate.Arrived():
		t.Errorf("%v arrived twice", op)
	default:
	}
	b.wantCount(callers)
}

// database/sql rolls back because a context has ended, so a Rollback must not end its wait for that.
func TestARollbackWaitsWhateverItsContext(t *testing.T) {
	gate := faultdb.NewGate()
	inj := faultdb.OnKind(faultdb.Always(faultdb.Block(gate)), faultdb.Rollback)
	conn, err := faultdb.Wrap(&bare{}, inj).Connect(t.Context())
	wantIs(t, err, nil)
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := conn.(driver.ConnBeginTx).BeginTx(ctx, driver.TxOptions{})
	wantIs(t, err, nil)
	cancel()
	done := make(chan error, 1)
	go func() { done <- tx.Rollback() }()
	<-gate.Arrived()
	wantHeld(t, done)
	gate.Release()
	wantIs(t, <-done, nil)
	wantIs(t, conn.Close(), nil)
}

func TestDelay(t *testing.T) {
	for _, delay := range []func(time.Duration) faultdb.Fault{faultdb.Delay, faultdb.DelayAfter} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, servers[0])
			conn, start := b.conn(first(delay(time.Hour))), time.Now()
			wantIs(t, executions[2].run(t.Context(), b, conn), nil)
			if got := time.Since(start); got != time.Hour {
				t.Errorf("it took %v, want 1h", got)
			}
			b.wantCount(1)
		})
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, servers[0])
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn := b.conn(first(delay(time.Hour)))
			wantIs(t, executions[0].run(ctx, b, conn), context.DeadlineExceeded)
		})
	}
}
