package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

const (
	sharedKey = "bench/shared"
	pollMin   = 10 * time.Millisecond // the default
	holdFor   = 2 * time.Millisecond
)

// job is what a worker is told first.
type job struct {
	Database, Source, Prefix string
	Fair                     bool
}

// hold is a lock that a worker had. Times are of the wall clock, in ns: all processes are on one host.
type hold struct {
	Token               rowlock.Token
	Asked, Locked       int64 // before and after Lock
	Unlocking, Unlocked int64 // before and after Unlock
	worker              int
}

// work is a worker's life: for each turn it is told of, as its length, it answers with its holds.
func work(ctx context.Context, _ []string) (err error) {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var j job
	if err := in.Decode(&j); err != nil {
		return err
	}
	d, err := rig.Join(j.Database, j.Source, j.Prefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	client, err := rowlock.Open(d.Pool, d.Dialect, &rowlock.Config{
		PollMin: pollMin, Fair: j.Fair, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for {
		var turn time.Duration
		switch err := in.Decode(&turn); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		holds, err := contend(ctx, client, turn)
		if err != nil {
			return err
		}
		if err := out.Encode(holds); err != nil {
			return err
		}
	}
}

// contend locks, works and unlocks, again and again. Between two locks it leaves the key to the others for about as long as they
// need to have it all: whoever came back at once would often find it free before a poller does, and nothing would be handed over.
func contend(ctx context.Context, client *rowlock.Client, turn time.Duration) (holds []hold, err error) {
	for end := time.Now().Add(turn); time.Now().Before(end); time.Sleep(rand.N(pollMin) + pollMin/2) {
		h := hold{Asked: now()}
		l, err := client.Lock(ctx, sharedKey)
		if err != nil {
			return nil, err
		}
		h.Locked, h.Token = now(), l.Token()
		time.Sleep(holdFor)
		h.Unlocking = now()
		if err := l.Unlock(ctx); err != nil {
			return nil, err
		}
		h.Unlocked = now()
		holds = append(holds, h)
	}
	return holds, nil
}

func now() int64 { return time.Now().UnixNano() }
