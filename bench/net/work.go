package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/far"
)

// job is what a process that this one has started is told first: it is the network, or one of two
// that hand a key over.
type job struct {
	Far    []far.Place
	Holder *holder
}

// holder is where a process finds the key.
type holder struct{ Database, Source, Prefix, Redis string }

func work(ctx context.Context, _ []string) error {
	in := json.NewDecoder(os.Stdin)
	var j job
	if err := in.Decode(&j); err != nil {
		return err
	}
	if j.Holder == nil {
		return far.Serve(j.Far, os.Stdin, os.Stdout)
	}
	return j.Holder.work(ctx, in, json.NewEncoder(os.Stdout))
}

// work does what it is told until its parent has no more orders.
func (h *holder) work(ctx context.Context, in *json.Decoder, out *json.Encoder) (err error) {
	all, err := h.open(ctx)
	defer func() { err = errors.Join(err, all.close()) }()
	if err != nil {
		return err
	}
	for {
		var what order
		if err := in.Decode(&what); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := out.Encode(all.follow(ctx, what)); err != nil {
			return err
		}
	}
}

func (all *holdings) follow(ctx context.Context, what order) done {
	way := all.all[what.Way]
	do := way.unlock
	if what.Lock {
		do = way.lock
	}
	before, began := way.trips(), time.Now()
	err := do(ctx)
	d := done{Began: began, Ended: time.Now(), Trips: way.trips() - before}
	if err != nil {
		d.Failed = err.Error()
	}
	return d
}
