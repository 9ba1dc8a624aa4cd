package main

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// watch reads what a server does and has.
type watch struct {
	d     *rig.Database
	calls *rig.Statements
}

func newWatch(ctx context.Context, d *rig.Database) (*watch, error) {
	calls, err := rig.NewStatements(ctx, d)
	return &watch{d, calls}, err
}

func (m *watch) close() error { return m.calls.Close() }

// begin counts from now on. end is called while the clients still have their connections.
func (m *watch) begin(ctx context.Context, into *Load) (end func() error, err error) {
	before, err := m.calls.Count(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return func() error {
		took := time.Since(began).Seconds()
		n, err := m.calls.Since(ctx, before)
		into.Statements = append(into.Statements, float64(n)/took)
		return errors.Join(err, m.having(ctx, into))
	}, nil
}

// connections are the queries for how many there are, those of this process among them.
var connections = map[string]string{
	"pgx":   `SELECT 'clients', count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'`,
	"mysql": `SHOW GLOBAL STATUS LIKE 'Threads_connected'`,
}

// having reads connections and memory. Its own connections do not count.
func (m *watch) having(ctx context.Context, into *Load) error {
	var name string
	var n int
	if err := m.d.Pool.QueryRowContext(ctx, connections[m.d.Driver]).Scan(&name, &n); err != nil {
		return err
	}
	into.Connections = append(into.Connections, float64(n-m.d.Pool.Stats().OpenConnections))
	pid := rig.ServerPID(m.d.Name)
	if pid == 0 {
		return nil
	}
	memory, err := rig.TreeMemory(pid)
	if memory > 0 {
		into.Memory = append(into.Memory, float64(memory))
	}
	return err
}
