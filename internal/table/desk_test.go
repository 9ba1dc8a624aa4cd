package table_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// onTrace are the statements of the trace.
func onTrace(op faultdb.Op) bool {
	return op.Executes() && strings.Contains(op.Query, "rowlock_trace")
}

// traceCalls are what may go through all of the trace's table.
var traceCalls = map[string]func(ctx context.Context, s *table.Store) error{
	"write": func(ctx context.Context, s *table.Store) error {
		return s.WriteTrace(ctx, []lease.TraceEvent{{Kind: lease.EventGranted, Key: "k", At: time.Now(), ID: 1}})
	},
	"read": func(ctx context.Context, s *table.Store) error {
		_, err := s.ReadTrace(ctx, lease.TraceFilter{Prefix: "k"})
		return err
	},
	"sweep": func(ctx context.Context, s *table.Store) error {
		_, err := s.SweepTrace(ctx, lease.SweepOptions{})
		return err
	},
}

// The store has one pinned connection.
func TestALockPassesATraceThatHangs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for name, call := range traceCalls {
			r := newRig(t, e, adapter.Update, 1)
			gate := faultdb.NewGate()
			r.faults.Set(faultdb.OnFunc(onTrace, faultdb.Always(faultdb.Block(gate))))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- call(ctx, r.store) }()
			<-gate.Arrived()
			release(t, r.store, hold(t, r.store, "lock/"+name))
			select {
			case err := <-ended:
				t.Errorf("a %s of the trace did not hang: %v", name, err)
			default:
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "not sent") {
				t.Errorf("a %s of the trace whose caller has left: %v", name, err)
			}
			gate.Release()
			r.faults.Set(nil)
			wantIs(t, call(t.Context(), r.store), nil)
		}
	})
}

func TestAReadingOfTheTraceThatTakesTooLongNamesTheCure(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	r := newRig(t, e, adapter.Update, 1)
	gate := faultdb.NewGate()
	defer gate.Release()
	r.faults.Set(faultdb.OnFunc(onTrace, faultdb.Always(faultdb.Block(gate))))
	_, err := r.store.ReadTrace(t.Context(), lease.TraceFilter{Prefix: "k"})
	if err == nil || errors.Is(err, lease.ErrUnknown) || !strings.Contains(err.Error(), "has not ended in 4s: name one Key") {
		t.Errorf("a reading that hangs: %v", err)
	}
}

// The server ends the wait, so that nothing waits on after the call has given up.
func TestATraceWhoseTableIsLockedWaitsASecond(t *testing.T) {
	for kind, statements := range map[string][2]string{
		"postgres": {`BEGIN; LOCK TABLE {rowlock_trace} IN ACCESS EXCLUSIVE MODE`, `ROLLBACK`},
		"mariadb":  {`LOCK TABLES {rowlock_trace} WRITE`, `UNLOCK TABLES`},
		"mysql":    {`LOCK TABLES {rowlock_trace} WRITE`, `UNLOCK TABLES`},
	} {
		t.Run(kind, func(t *testing.T) {
			e := on(t, kind)
			r := newRig(t, e, adapter.Update, 1)
			other, err := e.DB.Conn(t.Context())
			wantIs(t, err, nil)
			defer other.Close()
			_, err = other.ExecContext(t.Context(), e.SQL(statements[0]))
			wantIs(t, err, nil)
			for _, call := range traceCalls {
				wantIs(t, call(t.Context(), r.store), lease.ErrBusy)
			}
			_, err = other.ExecContext(t.Context(), statements[1])
			wantIs(t, err, nil)
			for _, call := range traceCalls {
				wantIs(t, call(t.Context(), r.store), nil)
			}
		})
	}
}

func TestAPoolWithoutRoomForTheTraceIsNamed(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	r := newRig(t, e, adapter.Update, 1)
	s := r.open(t, e.DB, table.Options{Connections: 1, Timeout: 5 * time.Second, TraceNeeds: 3})
	for name, call := range traceCalls {
		err := call(t.Context(), s)
		if !errors.Is(err, lease.ErrPool) || !strings.Contains(err.Error(), "MaxOpenConns must be at least 3") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
