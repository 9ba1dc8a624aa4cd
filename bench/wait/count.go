package main

import (
	"context"
	"sync/atomic"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// counter is who counts statements. A database without a server has nobody who does: there it is the driver.
type counter struct {
	by     string
	server *rig.Statements // nil: the driver counts
	sent   *sent
}

// sent is what the driver was told to run, seen on the way.
type sent struct {
	statements atomic.Int64
	version    string // a look at SQLite's counter of commits
	looks      atomic.Int64
}

func (s *sent) Inject(op faultdb.Op) faultdb.Fault {
	if op.Kind != faultdb.Connect && op.Kind != faultdb.Prepare && op.Kind != faultdb.Ping {
		s.statements.Add(1)
	}
	if s.version != "" && op.Executes() && op.Query == s.version {
		s.looks.Add(1)
	}
	return faultdb.None
}

func newCounter(ctx context.Context, d *rig.Database) (c *counter, err error) {
	c = &counter{by: "driver", sent: &sent{}}
	if d.Driver == "sqlite" {
		c.sent.version = d.Dialect.Text("version")
		return c, nil
	}
	if c.server, err = rig.NewStatements(ctx, d); err == nil {
		c.by = c.server.By
	}
	return c, err
}

// count asks the server, which counts that too: there is one such statement between two counts.
func (c *counter) count(ctx context.Context) (int64, error) {
	if c.server == nil {
		return c.sent.statements.Load(), nil
	}
	return c.server.Count(ctx)
}

// between is how many statements there were from one count to the next.
func (c *counter) between(before, after int64) float64 {
	if c.server != nil {
		after--
	}
	return float64(after - before)
}

func (c *counter) close() error { return c.server.Close() }
