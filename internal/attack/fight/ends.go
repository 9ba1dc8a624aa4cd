//go:build linux

package fight

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// leftFor is how long a key may stay locked after its last call has ended: the orphan cleaner's
// window, and slow servers. A lease that was left behind lasts twice as long.
const leftFor = 15 * time.Second

func init() {
	// hurried shares a key with a deadline that ends at any moment of the call.
	acts["hurried"] = func(ctx context.Context, h *hand) { h.shareFor(ctx, h.key(), h.upTo(5*time.Millisecond)+1) }
	// downgraded takes a key alone, lets readers in, and reads beside them.
	acts["downgraded"] = func(ctx context.Context, h *hand) { h.downgrade(ctx, h.key(), patience) }
	// ends uses the hand's own key in a way that may leave a lease behind. It must be free soon.
	acts["ends"] = func(ctx context.Context, h *hand) {
		key := h.key()
		switch h.rng.IntN(3) {
		case 0:
			h.shareFor(ctx, key, h.upTo(5*time.Millisecond)+1)
		case 1:
			h.downgrade(ctx, key, h.upTo(10*time.Millisecond)+1)
		default:
			h.forget(ctx, key)
		}
		h.mustBeFree(ctx, key)
	}
}

// downgrade is recorded as a reader's call, because readers come to have its token. ctx may end
// during Lock or during Downgrade.
func (h *hand) downgrade(ctx context.Context, key string, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	got := &held{serial: h.serial.Add(1), ttl: h.Plan.ttl()}
	sent := Now()
	l, err := h.client.Lock(ctx, key)
	if err == nil {
		if err = l.Downgrade(ctx); err != nil {
			_ = l.Unlock(context.Background())
		}
	}
	h.reads(l, got, key, sent, most, err)
}

// forget takes a key for a moment, and forgets it.
func (h *hand) forget(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	//rowlockvet:ignore rowlock has to end what is forgotten
	l, err := h.client.TryLock(ctx, key, rowlock.MaxHold(20*time.Millisecond))
	if err == nil && h.rng.IntN(2) == 0 {
		<-l.Context().Done()
	}
}

// mustBeFree records a key that no caller uses and that is not free.
func (h *hand) mustBeFree(ctx context.Context, key string) {
	got := &held{serial: h.serial.Add(1), ttl: h.Plan.ttl()}
	sent := Now()
	for ctx.Err() == nil {
		runtime.GC()
		l, err := h.client.TryLock(ctx, key)
		if err == nil {
			_ = l.Unlock(context.Background())
			return
		}
		if !errors.Is(err, rowlock.ErrHeld) {
			sent = Now() // of a database that fails this says nothing
		}
		if Now()-sent > int64(leftFor) {
			e := h.event(history.Kept, got, sent, err)
			e.Key = key
			h.record.Add(e)
			return
		}
		Sleep(ctx, look)
	}
}
