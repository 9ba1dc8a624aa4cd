package cleanup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/cleanup"
)

func TestDrainWaitsForTheLastCallAndLetsNoneIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cleanup.NewCalls()
		for range 2 {
			if !c.Enter() {
				t.Fatal("a call was refused before Drain")
			}
		}
		drained := make(chan error, 1)
		go func() { drained <- c.Drain(t.Context()) }()
		synctest.Wait()
		if c.Enter() {
			t.Error("a call was let in after Drain")
		}
		for left := range 2 {
			select {
			case err := <-drained:
				t.Errorf("Drain returned %v with %d calls left", err, 2-left)
			default:
			}
			c.Leave()
			synctest.Wait()
		}
		if err := <-drained; err != nil {
			t.Errorf("all calls have left: %v", err)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cleanup.NewCalls()
		c.Enter()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("Drain returned %v before the call has left", err)
		}
		c.Leave()
	})
}
