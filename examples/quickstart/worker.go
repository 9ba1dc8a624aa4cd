package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/rowlockdb/rowlock"
)

// workerCommand makes this program one of the processes it starts.
const workerCommand = "worker"

// job is a worker's task, the first line on its standard input. It is no argument, because other
// users of the machine could read the database's password there.
type job struct {
	Source, Prefix string

	CountTo int64 // count up to this…
	Locked  bool  // …with the lock or without

	Deposit int64         // or add this to the balance…
	Fenced  bool          // …with a fence or without…
	TTL     time.Duration // …under a lease of this length
}

// message is a line between a worker and its parent, either way.
type message struct {
	Event     string
	Token     rowlock.Token `json:",omitempty"`
	Value     int64         `json:",omitempty"`
	Held      bool          `json:",omitempty"`
	Error     string        `json:",omitempty"`
	PID       int           `json:",omitempty"`
	Additions int64         `json:",omitempty"`
	Took      time.Duration `json:",omitempty"`
	Waited    time.Duration `json:",omitempty"`
}

// worker is what a started process has: a database, locks, and the pipes to its parent.
type worker struct {
	job
	db    *database
	locks *rowlock.Client
	in    *json.Decoder
	out   *json.Encoder
}

// work is the life of a worker.
func work(stdin io.Reader, stdout io.Writer) int {
	// Ctrl-C reaches every process of a terminal; the parent ends us in its own order.
	signal.Ignore(os.Interrupt)
	w := &worker{in: json.NewDecoder(stdin), out: json.NewEncoder(stdout)}
	err := w.in.Decode(&w.job)
	if err == nil {
		err = w.run(context.Background())
	}
	if err != nil {
		_ = w.out.Encode(message{Event: "failed", Error: err.Error()})
		return 1
	}
	return 0
}

func (w *worker) run(ctx context.Context) (err error) {
	if w.db, err = open(ctx, w.Source, w.Prefix); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.db.Close()) }()
	// Our locks are held for milliseconds, so that waiters poll often.
	cfg := rowlock.Config{PollMax: 20 * time.Millisecond}
	if w.locks, err = rowlock.Open(w.db, w.db.Dialect, &cfg); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.locks.Close()) }()

	w.tell(message{Event: "ready"})
	if err := w.await("begin"); err != nil {
		return err
	}
	if w.CountTo > 0 {
		return w.count(ctx)
	}
	return w.deposits(ctx)
}

// tell sends a line to the parent. If it is gone, the next await says so.
func (w *worker) tell(m message) { _ = w.out.Encode(m) }

// await waits for a line from the parent.
func (w *worker) await(event string) error {
	var m message
	if err := w.in.Decode(&m); err != nil {
		return fmt.Errorf("waiting for %q from the parent: %w", event, err)
	}
	if m.Event != event {
		return fmt.Errorf("waiting for %q from the parent: it said %q", event, m.Event)
	}
	return nil
}
