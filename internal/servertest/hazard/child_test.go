package hazard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// TestChildAtWork is the child.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t,
		map[string]servertest.Job{
			"hold": servertest.Hold, "write": writing, "count": counting, "idle": idling,
		})
}

// writing adds one to the ledger, under the key it receives: it locks, reads, checks that it has
// the lock, waits for a line, and writes. "fenced" writes within a fence, "blind" trusts its
// check.
func writing(c *servertest.Worker) error {
	for how := c.Next(); how != ""; how = c.Next() {
		said, err := writeOnce(c, how, c.Next())
		if err != nil {
			return err
		}
		fmt.Println("child:", said)
	}
	return nil
}

func writeOnce(c *servertest.Worker, how, id string) (said string, err error) {
	ctx := context.Background()
	// Not renewed: a process that is stopped in the middle of a renewal has the row locked, on
	// MySQL, until its connection is dead.
	l, err := c.Locks.Lock(ctx, id, rowlock.NoRenew())
	for errors.Is(err, rowlock.ErrLost) { // the answer came too late for so short a lease
		l, err = c.Locks.Lock(ctx, id, rowlock.NoRenew())
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Unlock(ctx) }()
	var n int
	row := c.DB.QueryRowContext(ctx, c.SQL(`SELECT n FROM `+c.Table+` WHERE id = ?`), id)
	if err := row.Scan(&n); err != nil {
		return "", err
	}
	// too slow a machine for so short a lease: from the beginning, or the parent waits for ever
	if l.Context().Err() != nil {
		_ = l.Unlock(ctx)
		return writeOnce(c, how, id)
	}
	fmt.Println("child: checked")
	c.Next() // here it stands for longer than the lease
	tx, err := c.DB.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }()
	if how == "fenced" {
		if err := l.Fence(ctx, tx); err != nil {
			return strings.Join(strings.SplitN(err.Error(), ":", 3)[:2], ":"), nil
		}
	}
	if err := c.Run(tx, `UPDATE `+c.Table+` SET n = ? WHERE id = ?`, n+1, id); err != nil {
		return "", err
	}
	return "written", tx.Commit()
}

// counting adds to row 1 of the ledger, as often as it is told, while it writes row 2 without any
// lock.
func counting(c *servertest.Worker) (err error) {
	var times int
	if _, err := fmt.Sscan(c.Next(), &times); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := c.Run(c.DB, `UPDATE `+c.Table+` SET n = n + 1 WHERE id = 2`); err != nil {
				fmt.Println("child: beside the locks:", err)
			}
		}
	})
	defer wg.Wait()
	defer stop()
	for range times {
		once := func(ctx context.Context, l *rowlock.Lock) error { return countOnce(ctx, c, l) }
		if err := c.Locks.Do(context.Background(), "count", once); err != nil {
			return err
		}
	}
	return nil
}

func countOnce(ctx context.Context, c *servertest.Worker, l *rowlock.Lock) error {
	tx, err := c.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT n FROM `+c.Table+` WHERE id = 1`).Scan(&n); err != nil {
		return err
	}
	if err := c.Run(tx, `UPDATE `+c.Table+` SET n = ? WHERE id = 1`, n+1); err != nil {
		return err
	}
	return tx.Commit()
}
