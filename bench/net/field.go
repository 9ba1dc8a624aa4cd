package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/section"
	"github.com/rowlockdb/rowlock/once"
)

// field is everything that is measured of one database from one distance.
type field struct {
	*section.Field
	d       *rig.Database
	own     *own
	redis   *inRedis // nil: there is none
	once    *once.Once
	orders  *orders
	pair    *pair
	closers []func() error
}

func newField(ctx context.Context, d *rig.Database, one scene) (_ *field, err error) {
	f := &field{d: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if f.Field, err = section.New(ctx, d, 1); err != nil {
		return f, err
	}
	f.closers = append(f.closers, f.Close)
	if f.own, err = newOwn(ctx, d); err != nil {
		return f, err
	}
	f.closers = append(f.closers, f.own.close)
	if one.redis != "" {
		if f.redis, err = newInRedis(one.redis); err != nil {
			return f, err
		}
		f.closers = append(f.closers, f.redis.close)
	}
	if f.orders, err = newOrders(ctx, d); err != nil {
		return f, err
	}
	f.closers = append(f.closers, f.orders.close)
	if f.once, err = once.New(d.Pool, d.Dialect, &once.Config{Reap: -1}); err != nil {
		return f, err
	}
	f.closers = append(f.closers, f.once.Close)
	if f.pair, err = newPair(ctx, d, one.redis); f.pair != nil {
		f.closers = append(f.closers, f.pair.close)
	}
	return f, err
}

func (f *field) close() (err error) {
	for _, c := range slices.Backward(f.closers) {
		err = errors.Join(err, c())
	}
	return err
}

// groups are what is compared: first a round trip, which all others consist of.
func (f *field) groups() []*group {
	sections, pgx := f.sections()
	all := []*group{
		{onTrip, []*way{f.way("SELECT 1", f.own.ping)}},
		{onPair, f.ways(
			f.way("the server's own lock", f.own.lockAndUnlock), f.inRedis("redislock", f.redis.lockAndUnlock),
			f.way(wayPair, f.lockAndUnlock),
		)},
		sections,
	}
	if pgx != nil {
		all = append(all, pgx)
	}
	return append(
		all,
		&group{onFive, f.ways(
			f.way("the server's own locks, one statement", f.own.five), f.way(wayFive, f.lockAll),
		)},
		&group{onOnce, f.ways(
			f.way("INSERT of a unique key beside the order", f.orders.beside), f.way(wayOnce, f.onceDo),
		)},
		&group{onOpen, f.ways(
			f.fresh("a connection, SELECT 1", func(ctx context.Context, d *rig.Database) error {
				_, err := d.Pool.ExecContext(ctx, "SELECT 1")
				return err
			}),
			f.fresh(ours+"Open, Close", func(ctx context.Context, d *rig.Database) error {
				c, err := rowlock.OpenContext(ctx, d.Pool, d.Dialect, section.Config())
				if err != nil {
					return err
				}
				return c.Close()
			}),
		)},
		f.pair.group(),
	)
}

// sections are those of database/sql, and those of pgx itself if there are any.
func (f *field) sections() (all, pgx *group) {
	all = &group{onSection, f.ways(
		f.way(section.Raw, f.ForUpdate), f.way(wayOwn, f.own.around(f.Add)),
		f.inRedis(wayRedis, f.redis.around(f.d.Pool, f.Add)),
	)}
	for _, c := range f.Contenders()[1:] {
		w := f.way(ours+c.Name, func(ctx context.Context) error { return c.Pair(ctx, "") })
		if c.Name == section.OfPgx {
			pgx = &group{onPgx, f.ways(f.way("SELECT FOR UPDATE of pgx", f.ForUpdateOfPgx), w)}
			continue
		}
		all.ways = append(all.ways, w)
	}
	return all, pgx
}

// ways leaves out those that there are not.
func (f *field) ways(all ...*way) []*way {
	return slices.DeleteFunc(all, func(w *way) bool { return w == nil })
}

// way measures do.
func (f *field) way(name string, do func(context.Context) error) *way {
	trips := func() int64 { return f.d.Wire.Trips() + f.redis.trips() }
	return &way{name: name, do: func(ctx context.Context) (sample, error) {
		before, began := trips(), time.Now()
		err := do(ctx)
		return sample{time.Since(began), trips() - before}, err
	}}
}

// fresh measures do with a pool of its own, which has no connection yet.
func (f *field) fresh(name string, do func(context.Context, *rig.Database) error) *way {
	return &way{name: name, do: func(ctx context.Context) (_ sample, err error) {
		d, err := rig.Join(f.d.Name, f.d.Source, f.d.Prefix)
		if err != nil {
			return sample{}, err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		began := time.Now()
		err = do(ctx, d)
		return sample{time.Since(began), d.Wire.Trips()}, err
	}}
}

// inRedis is way, or nil where there is no Redis.
func (f *field) inRedis(name string, do func(context.Context) error) *way {
	if f.redis == nil {
		return nil
	}
	return f.way(name, do)
}

func (f *field) lockAndUnlock(ctx context.Context) error {
	l, err := f.Locks.Lock(ctx, "bench/net")
	if err != nil {
		return err
	}
	return l.Unlock(ctx)
}

// keys are five, the same each time.
var keys = []string{race.Key('n', 0, 1), race.Key('n', 0, 2), race.Key('n', 0, 3), race.Key('n', 0, 4), race.Key('n', 0, 5)}

func (f *field) lockAll(ctx context.Context) error {
	all, err := f.Locks.LockAll(ctx, keys)
	if err != nil {
		return err
	}
	return all.Unlock(ctx)
}

func (f *field) onceDo(ctx context.Context) error {
	id := f.orders.next()
	res, err := f.once.Do(ctx, once.Request{Key: id}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		return []byte(`{"total":42}`), f.orders.insert(ctx, tx, id)
	})
	if err == nil && res.Replayed {
		err = fmt.Errorf("%q was done before", id)
	}
	return err
}
