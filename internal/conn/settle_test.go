package conn_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
)

func TestSettleWaitsForWhatRunsAndForNothingElse(t *testing.T) {
	r := newRig(t, 2, nil)
	settle := func(ctx context.Context) <-chan struct{} {
		settled := make(chan struct{})
		go func() { r.Settle(ctx); close(settled) }()
		return settled
	}
	r.wait(settle(t.Context()), "Settle of idle conns")

	ctx, cancel := context.WithCancel(t.Context())
	left := hold(conn.Acquire, "left")
	go func() { <-left.running; cancel() }()
	r.Go(left.op)
	r.wantIs(r.Do(ctx, left.op), conn.ErrOrphaned)
	pending := hold(conn.Acquire, "pending")
	r.Go(pending.op) // comes after, and is not waited for

	short, enough := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer enough()
	r.wait(settle(short), "Settle to give up with its context")
	settled := settle(t.Context())
	select {
	case <-settled:
		t.Error("Settle returned while an op was running")
	case <-time.After(20 * time.Millisecond):
	}
	close(left.letGo)
	r.wait(settled, "Settle")
	r.wait(pending.running, "the next op")
	close(pending.letGo)
}
