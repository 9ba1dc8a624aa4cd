package clienttest

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// A look at a holder asks for nothing and writes nothing.
func TestInspectShowsHoldersAndChangesNothing(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		held := Take(t, c, "a", rowlock.Note("a note"))
		Unlock(t, Take(t, c, "b"))
		acquires, renewals, releases := s.Calls()
		records, err := c.Inspect(t.Context(), lease.Filter{Keys: []string{"a", "b", "c"}})
		if err != nil || len(records) != 2 {
			t.Fatalf("%+v, %v", records, err)
		}
		if a := records[0]; !a.Held || a.Token != held.Token() || a.Identity() == "" ||
			a.Remaining <= 0 || a.Remaining > TTL {
			t.Errorf("a: %+v", a)
		}
		if b := records[1]; b.Held {
			t.Errorf("b: %+v", b)
		}
		records, err = c.Inspect(t.Context(), lease.Filter{Held: true})
		if err != nil || len(records) != 1 || records[0].Key != "a" {
			t.Errorf("held: %+v, %v", records, err)
		}
		if x, y, z := s.Calls(); x != acquires || y != renewals || z != releases {
			t.Error("Inspect has written")
		}
	})
}

func TestInspectRefusesANilCtxAndAClosedClient(t *testing.T) {
	Bubble(t, func(t *testing.T, _ *rowlock.Client, s *Script) {
		c := Client(t, s, nil)
		var none context.Context
		_, err := c.Inspect(none, lease.Filter{})
		WantIs(t, "a nil ctx", err, rowlock.ErrConfig)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		_, err = c.Inspect(t.Context(), lease.Filter{})
		WantIs(t, "after Close", err, rowlock.ErrClosed)
	})
}

// Close does not close the store below a read that is under way.
func TestCloseWaitsForInspect(t *testing.T) {
	Bubble(t, func(t *testing.T, _ *rowlock.Client, s *Script) {
		s.OnInspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
			time.Sleep(time.Second)
			return s.Store.Inspect(ctx, f)
		}
		c := Client(t, s, nil)
		began := time.Now()
		done := make(chan error, 1)
		go func() {
			_, err := c.Inspect(t.Context(), lease.Filter{})
			done <- err
		}()
		time.Sleep(time.Second / 2)
		if err := c.Close(); err != nil || time.Since(began) < time.Second {
			t.Errorf("Close: %v, after %s", err, time.Since(began))
		}
		if err := <-done; err != nil {
			t.Errorf("Inspect: %v", err)
		}
	})
}
