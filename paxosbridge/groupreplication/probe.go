package groupreplication

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// probeKey has no lock. A probe registers a waiter for it, beside the keys' records.
	probeKey = lease.Reserved + "probe"
	// probeFor is how long that registration lasts.
	probeFor = time.Minute
	// arriveIn bounds how long New waits until a write has reached a majority of the members.
	arriveIn = 15 * time.Second
)

// prober is the waiter for probeKey in every process, so that there is one row in all.
var prober = lease.Owner{'p', 'r', 'o', 'b', 'e'}

// Probe changes a row, which takes the group's agreement, and reads it back. It waits for a primary
// as every other call does.
func (c *Cluster) Probe(ctx context.Context) error {
	keys := []string{probeKey}
	if err := c.store.Register(ctx, prober, "", keys, probeFor); err != nil {
		return err
	}
	seen, err := c.store.Awaited(ctx, lease.Owner{}, keys)
	if err == nil && !seen[0] {
		err = fmt.Errorf("%w: probe: a row written just now is missing", lease.ErrCorrupt)
	}
	return err
}

// arrives writes a row and waits until a majority of the members has it. A filter of the binary log
// or of a replica withholds rows from the other members without an error. Such rows would be lost
// with the primary.
func (c *Cluster) arrives(ctx context.Context) error {
	us, keys := lease.NewOwner(), []string{probeKey}
	if err := c.store.Register(ctx, us, "", keys, probeFor); err != nil {
		return err
	}
	err := c.members.await(ctx, func(ctx context.Context, i int) (n int, err error) {
		query := c.group.Text("group-arrived")
		err = c.members.dbs[i].QueryRowContext(ctx, query, []byte(probeKey), us[:]).Scan(&n)
		return n, err
	})
	return oneline.Join(err, c.store.Unregister(ctx, us, keys))
}

// await returns when a majority has answered with a count above 0.
func (m *members) await(ctx context.Context, ask func(ctx context.Context, i int) (int, error)) error {
	end := time.Now().Add(arriveIn)
	for {
		got := 0
		for i := range m.dbs {
			within, cancel := context.WithTimeout(ctx, askFor)
			if n, err := ask(within, i); err == nil && n > 0 {
				got++
			}
			cancel()
		}
		switch {
		case 2*got > len(m.dbs):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return fmt.Errorf(
				"%w: a commit of the primary reached %d of %d members within %s: check binlog_ignore_db, "+
					"binlog_do_db, replication filters, and members that lag",
				lease.ErrTopology, got, len(m.dbs), arriveIn,
			)
		}
		retry.Sleep(ctx, askEvery/5)
	}
}
