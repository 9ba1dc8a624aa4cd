package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/counted"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// hotRow is what one key reached in one home.
type hotRow struct {
	home          string
	rate, ratio   rig.Spread
	p50, p99      float64 // from asking for the key to having it, ms
	reads, writes float64
}

// home is a place to have the key.
type home struct {
	name    string
	clients []*rowlock.Client
	table   []*counted.Table
	rates   []float64
	waits   *hdrhistogram.Histogram
	took    time.Duration
}

// hot has two clients, as two processes have them, compete for one key, which is at home in the
// table and in each cluster by turns.
func (s settings) hot(ctx context.Context, d *rig.Database, p *rig.Progress) (rows []hotRow, err error) {
	var open closers
	defer func() { err = errors.Join(err, open.close()) }()
	homes := []*home{{name: "the table"}}
	if err := homes[0].open(ctx, d, &open, nil); err != nil {
		return nil, err
	}
	for _, c := range clusters {
		join, err := c.join(ctx, d, &open)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if join == nil {
			continue
		}
		h := &home{name: c.name}
		if err := h.open(ctx, d, &open, join); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		homes = append(homes, h)
	}
	for round := range s.rounds {
		for i := range homes {
			h := homes[(i+round)%len(homes)]
			p.Say(d.Name, "a hot key in "+h.name)
			if err := h.turn(ctx, s.turn, round == 0); err != nil {
				return nil, fmt.Errorf("%s: %w", h.name, err)
			}
		}
	}
	for _, h := range homes {
		rows = append(rows, h.row(homes[0]))
	}
	return rows, nil
}

func (h *home) key() string { return "hot/" + h.name }

// open makes two clients. With a cluster the key is moved there.
func (h *home) open(ctx context.Context, d *rig.Database, open *closers, join joiner) error {
	h.waits = hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
	for range 2 {
		table, err := rowlock.OpenTable(d.Pool, d.Dialect, config())
		if err != nil {
			return err
		}
		open.later(table)
		t := counted.Count(table)
		h.table = append(h.table, t)
		var store lease.Store = t
		if join != nil {
			cluster, err := join()
			if err != nil {
				return err
			}
			open.later(cluster)
			b, err := paxosbridge.New(ctx, t, cluster, &paxosbridge.Config{Every: -1, Refresh: time.Second, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			open.later(b)
			if len(h.clients) == 0 {
				if err := b.MoveOut(ctx, h.key(), "bench"); err != nil {
					return err
				}
			}
			store = b
		}
		c, err := rowlock.New(store, config())
		if err != nil {
			return err
		}
		open.later(c)
		h.clients = append(h.clients, c)
	}
	return nil
}

// turn lets both clients at the key. The first is not counted: everything is cold in it.
func (h *home) turn(ctx context.Context, d time.Duration, warmUp bool) error {
	for _, t := range h.table {
		if warmUp {
			t.Reset()
		}
	}
	var mu sync.Mutex
	waits := make([]time.Duration, 0, 4096)
	began := time.Now()
	rate, err := rig.Turn(ctx, 64, d, func(ctx context.Context, worker, _ int) error {
		asked := time.Now()
		l, err := h.clients[worker%2].Lock(ctx, h.key())
		if err != nil {
			return err
		}
		mu.Lock()
		waits = append(waits, time.Since(asked))
		mu.Unlock()
		return l.Unlock(ctx)
	})
	if err != nil {
		return err
	}
	h.rates = append(h.rates, rate)
	h.took += time.Since(began)
	for _, w := range waits {
		_ = h.waits.RecordValue(w.Microseconds())
	}
	return nil
}

func (h *home) row(floor *home) hotRow {
	ratios := make([]float64, len(h.rates))
	for i := range ratios {
		ratios[i] = h.rates[i] / floor.rates[i]
	}
	r := hotRow{home: h.name, rate: rig.SpreadOf(h.rates), ratio: rig.SpreadOf(ratios)}
	r.p50, r.p99 = float64(h.waits.ValueAtQuantile(50))/1000, float64(h.waits.ValueAtQuantile(99))/1000
	for _, t := range h.table {
		reads, writes := t.Calls()
		r.reads += float64(reads) / h.took.Seconds()
		r.writes += float64(writes) / h.took.Seconds()
	}
	return r
}
