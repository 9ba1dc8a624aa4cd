package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// beside is what hand-overs between processes are compared with.
type beside interface {
	once() error
	close() error
}

// yardstick is one of them, and how long it took: again and again without a rest, as short as it gets; and with rests as long as
// a lock is held, as a hand-over finds its processes, connections and caches.
type yardstick struct {
	what beside

	name         string
	busy, rested *hdrhistogram.Histogram // µs
}

// yardsticks are a commit, and a message where there are messages.
func yardsticks(ctx context.Context, d *rig.Database) (all []*yardstick, err error) {
	u, err := newUpdate(ctx, d)
	if err != nil {
		return nil, err
	}
	all = append(all, &yardstick{u, "commit", newHistogram(), newHistogram()})
	if d.Driver == "pgx" {
		m, err := newMessage(ctx, d)
		if err != nil {
			return all, err
		}
		all = append(all, &yardstick{m, "NOTIFY", newHistogram(), newHistogram()})
	}
	return all, nil
}

// during takes as long as d.
func (y *yardstick) during(ctx context.Context, d time.Duration) error {
	if err := y.repeat(ctx, d/2, 0, y.busy); err != nil {
		return err
	}
	return y.repeat(ctx, d/2, holdFor, y.rested)
}

func (y *yardstick) repeat(ctx context.Context, d, rest time.Duration, h *hdrhistogram.Histogram) error {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(rest) {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if err := y.what.once(); err != nil {
			return err
		}
		_ = h.RecordValue(time.Since(began).Microseconds())
	}
	return nil
}

// message is a bare NOTIFY: one connection sends, and another waits for it.
type message struct {
	sender, ear *pgx.Conn
	heard       chan error
}

const messageChannel = "rowlock_bench"

func newMessage(ctx context.Context, d *rig.Database) (m *message, err error) {
	m = &message{heard: make(chan error)}
	if m.sender, err = pgx.Connect(ctx, d.Source); err != nil {
		return nil, err
	}
	if m.ear, err = pgx.Connect(ctx, d.Source); err != nil {
		return nil, errors.Join(err, m.close())
	}
	if _, err = m.ear.Exec(ctx, "LISTEN "+messageChannel+d.Prefix); err == nil {
		_, err = m.sender.Prepare(ctx, "send", fmt.Sprintf("SELECT pg_notify('%s', $1)", messageChannel+d.Prefix))
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// once returns when the message has arrived.
func (m *message) once() error {
	go func() {
		_, err := m.ear.WaitForNotification(rig.Unwatched)
		m.heard <- err
	}()
	_, err := m.sender.Exec(rig.Unwatched, "send", "1")
	if err != nil {
		return err
	}
	return <-m.heard
}

func (m *message) close() (err error) {
	for _, c := range []*pgx.Conn{m.sender, m.ear} {
		if c != nil {
			err = errors.Join(err, c.Close(context.Background()))
		}
	}
	return err
}
