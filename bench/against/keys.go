package main

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The series of keys that rowlock and the raw statements share: they have turns, and so never meet.
const (
	rareSeries = 'R'
	liveSeries = 'L'
)

// varied races on keys of different kinds, each beside the raw statements on the same keys.
func (f *field) varied(ctx context.Context, s settings, p *rig.Progress) ([]*entry, error) {
	if err := f.makeVaried(ctx, s, p); err != nil {
		return nil, err
	}
	kinds := f.kindsOfKeys(s)
	for _, c := range kinds {
		c.system, c.meter = f.d.Name, f.d.Meter()
	}
	return f.uncontended(ctx, s, kinds, p)
}

// kindsOfKeys are the contenders. A key that never recurs has no row that the raw statements could
// update, so its floor is theirs on recurring keys.
func (f *field) kindsOfKeys(s settings) []*contender {
	byHand, some := []int{1, 64}, []int{1, 64, 256}
	rare, live := race.Contender{Series: rareSeries, Among: s.rare}, race.Contender{Series: liveSeries, Among: s.live}
	update, hand := f.clients.update, f.hands.rawPair
	all := []*contender{
		{name: nameRaw, key: recurring('f'), levels: byHand, pair: hand},
		{name: nameUpdate, key: recurring('u'), levels: some, pair: update},
		{name: rawRare, key: rare, levels: byHand, pair: hand, floor: rawRare},
		{name: nameRare, key: rare, levels: some, pair: update, floor: rawRare},
		{name: nameOneShot, key: race.Contender{Series: 's', Fresh: true}, levels: some, pair: f.clients.insert},
	}
	if !s.hasLive(f.d) {
		return all
	}
	return append(all,
		&contender{name: rawMillion, key: live, levels: byHand, pair: hand, floor: rawMillion},
		&contender{name: nameMillion, key: live, levels: some, pair: update, floor: rawMillion})
}

// hasLive is true of the database that has the large table: to fill it takes longer than to race.
func (s settings) hasLive(d *rig.Database) bool { return d.Name == s.host() }

func (f *field) makeVaried(ctx context.Context, s settings, p *rig.Progress) error {
	p.Say(f.d.Name, "making rows")
	if err := f.makeWalk(ctx, rareSeries, s.rare, 0); err != nil || !s.hasLive(f.d) {
		return err
	}
	return f.makeWalk(ctx, liveSeries, s.live, 0)
}

// makeWalk makes the rows of a walk, in the order of their keys, free for so long already.
func (f *field) makeWalk(ctx context.Context, series byte, n int, since time.Duration) error {
	return inChunks(n, func(from, to int) error {
		keys := make([]string, 0, to-from)
		for i := from; i < to; i++ {
			keys = append(keys, race.Key(series, 0, i))
		}
		return f.d.MakeFree(ctx, keys, since)
	})
}

// inChunks calls f for parts of n that fit into memory.
func inChunks(n int, f func(from, to int) error) error {
	const some = 50_000
	for from := 0; from < n; from += some {
		if err := f(from, min(n, from+some)); err != nil {
			return err
		}
	}
	return nil
}
