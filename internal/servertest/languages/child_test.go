package languages

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// TestChildAtWork is the child.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{"obey": obey})
}

// obey does in Go what the programs in other languages do: it takes the same lines and gives the
// same answers. Its first line is the key.
func obey(c *servertest.Worker) error {
	key := c.Next()
	var l *rowlock.Lock
	for line := c.Next(); line != ""; line = c.Next() {
		command, statement, _ := strings.Cut(line, " ")
		var err error
		switch command {
		case "lock":
			if l, err = c.Locks.Lock(context.Background(), key); err == nil {
				fmt.Println("child: token", l.Token())
			}
		case "write":
			err = write(c, l, statement)
		case "state":
			fmt.Println("child:", state(l))
		case "unlock":
			if err = l.Unlock(context.Background()); err == nil {
				fmt.Println("child: free")
			}
		}
		if err != nil {
			fmt.Printf("child: failed: %v\n", err)
		}
	}
	return nil
}

func state(l *rowlock.Lock) string {
	if l == nil || l.Context().Err() != nil {
		return "lost"
	}
	return "held"
}

func write(c *servertest.Worker, l *rowlock.Lock, statement string) error {
	ctx := context.Background()
	tx, err := c.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	fmt.Println("child: written")
	return nil
}
