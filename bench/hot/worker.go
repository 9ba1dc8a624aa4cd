package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// work is a worker's life: for each task it prepares, contends when it is told to, answers with its waiting times in µs, and cleans
// up when all have ended.
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
	for {
		var what task
		switch err := in.Decode(&what); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := turn(ctx, d, what, in, out); err != nil {
			return err
		}
	}
}

func turn(ctx context.Context, d *rig.Database, what task, in *json.Decoder, out *json.Encoder) (err error) {
	l, err := what.Way.open(ctx, d)
	if err != nil {
		return err
	}
	if err := errors.Join(out.Encode(true), in.Decode(new(bool))); err != nil {
		return errors.Join(err, l.close())
	}
	waits, err := contend(ctx, l, what)
	if err == nil {
		err = errors.Join(out.Encode(waits), in.Decode(new(bool)))
	}
	return errors.Join(err, l.close(), out.Encode(true))
}

// contend counts the pairs that were complete when the turn ended, but for those of the time before it is counted: connections are cold,
// and processes have not heard of one another.
func contend(ctx context.Context, l locker, what task) (waits []int64, err error) {
	waits = make([]int64, 0, 1024)
	counted := time.Now().Add(what.Warm)
	ctx, cancel := context.WithDeadline(ctx, counted.Add(what.For))
	defer cancel()
	for {
		asked := time.Now()
		unlock, err := l.lock(ctx)
		if ctx.Err() != nil && err != nil {
			return waits, nil
		}
		if err != nil {
			return nil, err
		}
		wait := time.Since(asked)
		if what.Hold > 0 {
			time.Sleep(what.Hold)
		}
		if err := unlock(); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return waits, nil
		}
		if time.Now().After(counted) {
			waits = append(waits, wait.Microseconds())
		}
	}
}
