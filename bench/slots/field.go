package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/semaphore"
)

// field is a client, its semaphore, and as many keys as that has slots.
type field struct {
	locks *rowlock.Client
	slots *semaphore.Semaphore
	keys  []string
	turn  atomic.Int64
}

func newField(d *rig.Database, slots int) (*field, error) {
	config := &rowlock.Config{Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}}
	locks, err := rowlock.Open(d.Pool, d.Dialect, config)
	if err != nil {
		return nil, err
	}
	f := &field{locks: locks}
	for i := range slots {
		f.keys = append(f.keys, fmt.Sprintf("bench/slots/%03d", i))
	}
	if f.slots, err = semaphore.New(locks, "bench", slots); err != nil {
		return nil, f.close()
	}
	return f, nil
}

func (f *field) close() error { return f.locks.Close() }

// sent is how many statements the client has sent.
func (f *field) sent() int64 { return f.locks.Stats().Statements }

// contenders are the keys and the semaphore. A pair takes the next key in turn.
func (f *field) contenders() []race.Contender {
	keys := fmt.Sprintf("%d keys", len(f.keys))
	slots := fmt.Sprintf("semaphore of %d", len(f.keys))
	return []race.Contender{
		{Name: keys, Series: 'k', Pair: f.lock},
		{Name: slots, Series: 's', Target: 0.7, Pair: f.acquire},
	}
}

func (f *field) lock(ctx context.Context, _ string) error {
	l, err := f.locks.Lock(ctx, f.keys[int(f.turn.Add(1))%len(f.keys)])
	if err != nil {
		return err
	}
	return l.Unlock(ctx)
}

func (f *field) acquire(ctx context.Context, _ string) error {
	p, err := f.slots.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	return p.Release(ctx)
}
