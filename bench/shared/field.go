package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// field is a client that is measured, and another that shares a key with it all the time.
type field struct {
	client, other *rowlock.Client
	stays         *rowlock.Lock
}

const (
	sharedKey = "bench/shared"  // another client has it, too
	aloneKey  = "bench/alone"   // only the client that is measured
	turnsKey  = "bench/inturns" // exclusively
)

func newField(ctx context.Context, d *rig.Database) (f *field, err error) {
	f = &field{}
	for _, c := range []**rowlock.Client{&f.client, &f.other} {
		config := &rowlock.Config{Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}}
		if *c, err = rowlock.Open(d.Pool, d.Dialect, config); err != nil {
			return nil, errors.Join(err, f.close(ctx))
		}
	}
	if f.stays, err = f.other.RLock(ctx, sharedKey); err != nil {
		return nil, errors.Join(err, f.close(ctx))
	}
	return f, nil
}

func (f *field) close(ctx context.Context) (err error) {
	if f.stays != nil {
		err = f.stays.Unlock(ctx)
	}
	for _, c := range []*rowlock.Client{f.client, f.other} {
		if c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// sent is how many statements the measured client has sent.
func (f *field) sent() int64 { return f.client.Stats().Statements }

// scene is contenders with so many goroutines. The first takes the key exclusively.
type scene struct {
	goroutines int
	contenders []race.Contender
}

func (f *field) scenes(s settings) (all []scene) {
	if s.parts["one"] {
		all = append(all, scene{1, []race.Contender{
			{Name: "Lock", Series: 'x', Pair: pair(f.client.Lock, "")},
			{Name: "RLock of a shared key", Series: 's', Target: 0.6, Pair: pair(f.client.RLock, sharedKey)},
		}})
	}
	if s.parts["many"] {
		all = append(all, scene{s.readers, []race.Contender{
			{Name: "Lock, in turns", Series: 'x', Pair: pair(f.client.Lock, turnsKey)},
			{Name: "RLock of a shared key", Series: 's', Target: 3, Pair: pair(f.client.RLock, sharedKey)},
			{Name: "RLock", Series: 's', Target: 3, Pair: pair(f.client.RLock, aloneKey)},
		}})
	}
	return all
}

type lock func(context.Context, string, ...rowlock.Option) (*rowlock.Lock, error)

// pair locks and unlocks one key, or that of the turn.
func pair(lock lock, one string) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		if one != "" {
			key = one
		}
		l, err := lock(ctx, key)
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
}
