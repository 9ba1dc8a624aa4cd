package shared

import (
	"context"
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// TestChildAtWork is the child process.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{"read": read, "mix": mix})
}

// read shares each key that it is told, until it is told nothing more.
func read(c *servertest.Worker) error {
	for key := c.Next(); key != ""; key = c.Next() {
		l, err := c.Locks.RLock(context.Background(), key)
		if err != nil {
			return err
		}
		fmt.Println("child: shared")
		c.Next()
		fmt.Println("child: lost", l.Context().Err() != nil)
	}
	return nil
}
