package cleanup_test

import (
	"context"
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
		drained := make(chan struct{})
		go func() { c.Drain(t.Context()); close(drained) }()
		synctest.Wait()
		if c.Enter() {
			t.Error("a call was let in after Drain")
		}
		for left := range 2 {
			select {
			case <-drained:
				t.Errorf("Drain returned with %d calls left", 2-left)
			default:
			}
			c.Leave()
			synctest.Wait()
		}
		<-drained
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cleanup.NewCalls()
		c.Enter()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.Drain(ctx)
		if ctx.Err() == nil {
			t.Error("Drain returned before the call has left")
		}
		c.Leave()
	})
}
