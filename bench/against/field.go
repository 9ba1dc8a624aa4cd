package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The names that verdicts look for.
const (
	nameRaw       = "raw statements"
	nameNaive     = "INSERT, DELETE"
	nameUpdate    = "rowlock"
	nameInsert    = "rowlock Insert"
	nameRelaxed   = "rowlock, relaxed release"
	nameOneShot   = "rowlock Insert, one-shot keys"
	nameRare      = "rowlock, rarely recurring keys"
	nameMillion   = "rowlock, 1,000,000 live keys"
	rawRare       = "raw statements, rarely recurring keys"
	rawMillion    = "raw statements, 1,000,000 live keys"
	nameForUpdate = "rowlock forupdate"
	nameSwap      = "rowlock optimistic"
	nameOwn       = "the server's own lock"
)

// field is everybody who runs on one database. The floor comes first.
type field struct {
	d          *rig.Database
	keys       race.Keys
	hands      *hands
	contenders []*contender
	clients    clients
	closers    []io.Closer
}

func (f *field) closeLater(c io.Closer) { f.closers = append(f.closers, c) }

func (f *field) close() error {
	var errs []error
	for _, c := range slices.Backward(f.closers) {
		errs = append(errs, c.Close())
	}
	f.hands.close()
	_, err := f.d.Pool.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+naiveTable(f.d))
	return errors.Join(append(errs, err)...)
}

func openField(ctx context.Context, d *rig.Database, s settings, others *others) (f *field, err error) {
	f = &field{d: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	n := s.level(mostHands)
	if d.Name == "sqlite" {
		n = 1
	}
	if err = f.openHands(ctx, n); err != nil {
		return f, err
	}
	f.byHand(n)
	if err = f.ours(d, s); err != nil {
		return f, err
	}
	if d.Name == s.host() {
		f.contenders = append(f.contenders, others.contenders...)
	}
	return f, f.makeRows(ctx, s)
}

// openHands makes the table that some of their statements are on, too.
func (f *field) openHands(ctx context.Context, n int) (err error) {
	if _, err = f.d.Pool.ExecContext(ctx, fmt.Sprintf(naiveTables[f.d.Driver], naiveTable(f.d))); err != nil {
		return err
	}
	f.hands, err = openHands(ctx, f.d, n)
	return err
}

func (f *field) add(c *contender) {
	if c.system == "" {
		c.system = f.d.Name
	}
	c.meter = f.d.Meter()
	f.contenders = append(f.contenders, c)
}

func (f *field) byHand(n int) {
	pool, levels := fmt.Sprintf("one per caller, at most %d", n), []int{1, 16, 64}
	if f.d.Name == "postgres" {
		levels = append(levels, 1024) // which a target compares with
	}
	f.add(&contender{
		name: nameRaw, pool: pool, key: recurring('f'), levels: levels, pair: f.hands.rawPair, contend: f.hands.rawPair,
	})
	f.add(&contender{
		name: nameNaive, pool: pool, key: recurring('n'), levels: []int{1, 64},
		pair: f.hands.naivePair, contend: f.hands.naivePair,
	})
	if ownLocks[f.d.Driver] != nil {
		f.add(&contender{
			name: nameOwn, pool: pool, key: recurring('a'), levels: []int{1, 64},
			pair: f.hands.ownPair("try"), contend: f.hands.ownPair("lock"),
		})
	}
}

func (f *field) ours(d *rig.Database, s settings) error {
	swap, err := f.optimistic(d)
	if err != nil {
		return err
	}
	if f.clients, err = f.open(d, s.connections); err != nil {
		return err
	}
	connections := many(d.Connections(s.connections), "pinned connection")
	f.add(&contender{
		name: nameUpdate, pool: connections, key: recurring('u'), levels: []int{1, 16, 64, 256, 1024},
		pair: f.clients.update, contend: f.clients.update, wait: true,
	})
	if f.clients.relaxed != nil {
		f.add(&contender{
			name: nameRelaxed, pool: connections, key: recurring('v'), levels: []int{1, 16, 64, 1024}, pair: f.clients.relaxed,
		})
	}
	f.add(&contender{
		name: nameInsert, pool: connections, key: recurring('i'), levels: []int{1, 1024}, pair: f.clients.insert,
	})
	f.add(&contender{
		name: nameSwap, pool: many(d.Connections(4), "pinned connection"), key: recurring('o'), levels: []int{1, 64},
		pair: swap, contend: swap,
	})
	if d.Name == "sqlite" {
		return nil // the lock on its file is the only one it has
	}
	return f.transactions(d, s.level(mostHands))
}

func (f *field) transactions(d *rig.Database, connections int) error {
	transaction, err := f.forUpdate(d, connections)
	if err != nil {
		return err
	}
	f.add(&contender{
		name: nameForUpdate, pool: fmt.Sprintf("4 pinned connections, and one for each held lock, at most %d", connections),
		key: recurring('t'), levels: []int{1, 64}, pair: transaction, contend: transaction,
	})
	return nil
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// makeRows makes the floor's rows, which it cannot, and those of contenders with so many keys that to lock each once would take long.
func (f *field) makeRows(ctx context.Context, s settings) error {
	var keys []string
	for _, c := range f.contenders {
		if !slices.Contains([]string{nameRaw, nameUpdate, nameInsert, nameSwap}, c.name) {
			continue
		}
		for worker := range s.level(slices.Max(c.levels)) {
			for n := range race.Own {
				keys = append(keys, f.keys.Next(c.key, worker, n))
			}
		}
		if c.name == nameRaw {
			keys = append(keys, contended(c, skewedKeys)...)
		}
	}
	return f.d.MakeFree(ctx, keys, time.Hour)
}
