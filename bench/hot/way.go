package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/raw"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// way is one way to lock: rowlock, or polling by hand with a pause.
type way struct {
	Name  string
	Pause time.Duration // 0: rowlock
}

func (w way) key() string { return fmt.Sprintf("bench/hot/%s", w.Pause) }

// locker is a way within one process.
type locker interface {
	lock(ctx context.Context) (unlock func() error, err error)
	close() error
}

func (w way) open(ctx context.Context, d *rig.Database) (locker, error) {
	if w.Pause > 0 {
		s, conn, err := raw.Dial(ctx, d)
		return &byHand{d, s, conn, []byte(w.key()), w.Pause}, err
	}
	c, err := rowlock.Open(d.Pool, d.Dialect, &rowlock.Config{Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}})
	return &ours{c, w.key()}, err
}

type ours struct {
	client *rowlock.Client
	key    string
}

func (o *ours) lock(ctx context.Context) (func() error, error) {
	l, err := o.client.Lock(ctx, o.key)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

func (o *ours) close() error { return o.client.Close() }

// byHand polls.
type byHand struct {
	d     *rig.Database
	raw   raw.Statements
	conn  *rig.Conn
	key   []byte
	pause time.Duration
}

func (b *byHand) lock(ctx context.Context) (func() error, error) {
	owner := lease.NewOwner()
	for {
		_, err := b.raw.Take(b.key, owner)
		if err == nil {
			return func() error { return b.unlock(owner) }, nil
		}
		if !errors.Is(err, rig.ErrNotOne) && !b.conflict(err) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(b.pause/2 + rand.N(b.pause)):
		}
	}
}

// unlock tries again at once: a file that is busy, or a deadlock, has freed nothing.
func (b *byHand) unlock(owner lease.Owner) error {
	for {
		if err := b.raw.Clear(b.key, owner); err == nil || !b.conflict(err) {
			return err
		}
	}
}

func (b *byHand) conflict(err error) bool {
	return b.d.Dialect.Classify(err).Class == sqlstore.Conflict
}

func (b *byHand) close() error {
	b.conn.Close()
	return nil
}
