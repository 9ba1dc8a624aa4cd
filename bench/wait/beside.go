package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// beside is what hand-overs between processes are compared with.
type beside interface {
	once() error
	close() error
}

// newBeside is a message where there are messages, and a commit elsewhere.
func newBeside(ctx context.Context, d *rig.Database) (beside, error) {
	if d.Driver == "pgx" {
		return newMessage(ctx, d)
	}
	return newUpdate(ctx, d)
}

// during repeats it and reports how long each took.
func during(ctx context.Context, b beside, d time.Duration, took func(time.Duration)) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		if err := b.once(); err != nil {
			return err
		}
		took(time.Since(began))
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
