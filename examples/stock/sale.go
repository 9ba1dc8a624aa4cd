package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// result is the outcome of one way.
type result struct {
	way
	items  int
	sold   int           // how many buyers have an item
	left   int64         // on the shelves
	took   time.Duration // until the last sale
	orders float64       // per second
}

// sell puts the items on the shelves and lets the buyers in. A buyer goes from shelf to shelf until
// one has an item, and skips shelves that are known to be empty, because they are not filled again.
func (s *shop) sell(ctx context.Context, w way, served *atomic.Int64) (r result, err error) {
	if err := s.fill(ctx, w); err != nil {
		return r, err
	}
	empty := make([]atomic.Bool, w.shelves)
	began := time.Now()
	all, inside := errgroup.WithContext(ctx) // the first who cannot buy ends the sale
	all.SetLimit(crowd)
	for number := range int64(s.buyers) {
		all.Go(func() error {
			defer served.Add(1)
			return s.serve(inside, w, buyer{number, w.name}, empty)
		})
	}
	if err := all.Wait(); err != nil {
		return r, err
	}
	return s.count(ctx, w, time.Since(began))
}

// crowd is how many buyers are in the shop at a time.
const crowd = 256

func (s *shop) serve(ctx context.Context, w way, b buyer, empty []atomic.Bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	first := rand.IntN(w.shelves)
	for i := range w.shelves {
		shelf := (first + i) % w.shelves
		if empty[shelf].Load() {
			continue
		}
		err := w.buy(ctx, int64(shelf), b)
		if !errors.Is(err, errSoldOut) {
			return err
		}
		empty[shelf].Store(true)
	}
	return nil
}

// fill spreads the items over the shelves.
func (s *shop) fill(ctx context.Context, w way) error {
	if err := s.exec(ctx, `DELETE FROM {shelves}`); err != nil {
		return err
	}
	for shelf := range w.shelves {
		items := (s.items + shelf) / w.shelves // they add up to all of them
		if err := s.exec(ctx, `INSERT INTO {shelves} (id, items, version) VALUES (?, ?, 1)`, shelf, items); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) count(ctx context.Context, w way, took time.Duration) (result, error) {
	r := result{way: w, items: s.items, took: took}
	err := s.db.GetContext(ctx, &r.sold, s.sql(`SELECT count(*) FROM {sold} WHERE way = ?`), w.name)
	if err == nil {
		err = s.db.GetContext(ctx, &r.left, s.sql(`SELECT sum(items) FROM {shelves}`))
	}
	r.orders = float64(r.sold) / took.Seconds()
	return r, err
}

// check returns an error if an item was sold twice, or lost.
func (r result) check() error {
	if !r.unsafe && int64(r.sold)+r.left != int64(r.items) {
		return fmt.Errorf("PROMISE BROKEN: %s: %d sold and %d left of %d", r.name, r.sold, r.left, r.items)
	}
	return nil
}
