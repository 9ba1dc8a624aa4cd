package trace

import (
	"context"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// run writes until Stop, which writes the rest. It sleeps while nothing happens.
func (r *Recorder) run() {
	defer close(r.done)
	var left []lease.TraceEvent
	for r.sleep() {
		left = r.flush(r.base, r.take(left))
	}
	r.putBack(left)
}

// sleep waits for an event, and then for more, or for the end of a pause after a failure. It
// reports false after Stop.
func (r *Recorder) sleep() bool {
	wait, pausing := r.pause, r.pause > 0
	if !pausing {
		select {
		case <-r.wake:
		case <-r.stop:
			return false
		}
		wait = every
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-r.stop:
			return false
		case <-timer.C:
			return true
		case <-r.wake:
			if !pausing && r.full() {
				return true
			}
		}
	}
}

func (b *buffer) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events) >= batch
}

// take returns what is to be written: left, and what has come since.
func (b *buffer) take(left []lease.TraceEvent) []lease.TraceEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(left) > 0 {
		left = append(left, b.events...)
		b.events = b.events[:0]
	} else {
		left, b.events, b.spare = b.events, b.spare[:0], nil
	}
	b.taken = len(left)
	return left
}

// putBack leaves to Stop what was not written.
func (b *buffer) putBack(left []lease.TraceEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(left[:len(left):len(left)], b.events...)
	b.taken = 0
}

// flush writes events and returns those that it could not write. The statement after a failure is
// sent after a pause.
func (r *Recorder) flush(ctx context.Context, events []lease.TraceEvent) (left []lease.TraceEvent) {
	all := events
	if len(events) == 0 && !r.settle(ctx) {
		return nil
	}
	for len(events) > 0 {
		n := min(len(events), batch)
		done, err := r.write(ctx, events[:n])
		if done {
			events = events[n:]
			r.mu.Lock()
			r.taken = len(events)
			r.mu.Unlock()
		}
		if err != nil {
			return events
		}
	}
	if cap(all) <= 4*batch { // what a burst has needed is given back
		clear(all)
		r.spare = all[:0]
	}
	return nil
}

// write writes a batch, and how many events were dropped. done is false if nothing was written, so
// that the batch is worth another try.
func (r *Recorder) write(ctx context.Context, events []lease.TraceEvent) (done bool, err error) {
	gone := r.dropped.Load()
	rows := events
	if gone > r.told {
		rows = append(events[:len(events):len(events)], r.droppedSince(gone))
	}
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err = r.cfg.Store.WriteTrace(short, rows); err == nil {
		r.told = gone
		r.written.Add(int64(len(events)))
		if r.pause = 0; r.failed {
			r.failed = false
			r.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "rowlock: the trace is written again",
				slog.Int64("dropped", gone))
		}
		return true, nil
	}
	r.report(err)
	if done = hopeless(err); done {
		r.dropped.Add(int64(len(events)))
	}
	return done, err
}

// settle ends a pause after a failure that has left no event to write: what the trace does not have
// is told now, because the next event may come late. It reports false if that has failed.
func (r *Recorder) settle(ctx context.Context) bool {
	if r.dropped.Load() == r.told {
		r.pause = 0
		return true
	}
	_, err := r.write(ctx, nil)
	return err == nil
}

// hopeless reports whether a batch is not worth another try: it may have been written, which would
// write it twice, or its events will always be refused, which would keep back all later ones. A
// missing right or table is none of these.
func hopeless(err error) bool {
	return oneline.Is(err, lease.ErrUnknown, lease.ErrCorrupt, lease.ErrInvalidKey, lease.ErrConfig,
		lease.ErrPool, lease.ErrUnsupported, lease.ErrTokenExhausted)
}

func (r *Recorder) droppedSince(gone int64) lease.TraceEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return lease.TraceEvent{
		Kind: lease.EventDropped, At: time.Now(), ID: r.next, Identity: r.cfg.Identity,
		Dropped: gone - r.told,
	}
}

// report logs the first failure, and makes the pause longer.
func (r *Recorder) report(err error) {
	r.pause = min(max(2*r.pause, firstPause), lastPause)
	if r.failed {
		return
	}
	r.failed = true
	r.cfg.Log.LogAttrs(context.Background(), slog.LevelWarn,
		"rowlock: the trace cannot be written; locks go on, and events are dropped when the buffer is full",
		slog.Any("error", err))
}

// ElectionKey is the lock of the client that removes old events.
const ElectionKey = lease.Reserved + "trace"

// Sweeper is the trace as a reaper sweeps it.
type Sweeper struct{ lease.Tracer }

// Sweep removes old events.
func (s Sweeper) Sweep(ctx context.Context, o lease.SweepOptions) (int64, error) {
	return s.SweepTrace(ctx, o)
}
