package groupreplication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

const (
	// probeKey has no lock. That a process waits for it is what a probe writes, beside the keys' records.
	probeKey = lease.Reserved + "probe"
	// probeFor is how long what a probe has written counts.
	probeFor = time.Minute
	// arriveIn bounds how long a write may take to another member before New takes it that it never comes.
	arriveIn = 15 * time.Second
)

// prober is who waits for probeKey, in every process: one row in all.
var prober = lease.Owner{'p', 'r', 'o', 'b', 'e'}

// Probe changes a row, which takes the group's agreement, and reads it back. It waits as every other call for a primary.
func (c *Cluster) Probe(ctx context.Context) error {
	keys := []string{probeKey}
	if err := c.store.Await(ctx, prober, keys, probeFor); err != nil {
		return err
	}
	seen, err := c.store.Awaited(ctx, lease.Owner{}, keys)
	if err == nil && !seen[0] {
		err = fmt.Errorf("%w: probe: what was written a moment ago is not there", lease.ErrCorrupt)
	}
	return err
}

// arrives writes something and waits until another member has it. A filter of the binary log, or one of a replica, keeps rows from the
// others without an error; they would be forgotten with the primary.
func (c *Cluster) arrives(ctx context.Context) error {
	us, keys := lease.NewOwner(), []string{probeKey}
	if err := c.store.Await(ctx, us, keys, probeFor); err != nil {
		return err
	}
	err := c.members.await(ctx, func(ctx context.Context, i int) (n int, err error) {
		query := c.group.Text("group-arrived")
		err = c.members.dbs[i].QueryRowContext(ctx, query, []byte(probeKey), us[:]).Scan(&n)
		return n, err
	})
	return errors.Join(err, c.store.Desist(ctx, us, keys))
}

// await returns when a majority has answered above 0.
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
			return fmt.Errorf("%w: what the primary has committed was seen on %d of %d members within %s: look for binlog_ignore_db, binlog_do_db and replication filters, and for members that lag", lease.ErrTopology, got, len(m.dbs), arriveIn)
		}
		select {
		case <-ctx.Done():
		case <-time.After(askEvery / 5):
		}
	}
}
