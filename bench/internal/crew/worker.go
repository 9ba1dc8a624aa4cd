package crew

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Work is a worker's life: for each task it prepares, contends when it is told to, answers, and
// cleans up when all have ended.
func Work(ctx context.Context, _ []string) (err error) {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var j Job
	if err := in.Decode(&j); err != nil {
		return err
	}
	d, err := rig.Join(j.Database, j.Source, j.Prefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for {
		var what Task
		switch err := in.Decode(&what); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := turn(ctx, d, j, what, in, out); err != nil {
			return err
		}
	}
}

func turn(ctx context.Context, d *rig.Database, j Job, what Task, in *json.Decoder, out *json.Encoder) (err error) {
	l, err := what.Way.open(ctx, d, j, what.Goroutines)
	if err != nil {
		return err
	}
	if err := errors.Join(out.Encode(true), in.Decode(new(bool))); err != nil {
		return errors.Join(err, l.close())
	}
	answer, err := contend(ctx, l, what)
	if err == nil {
		err = errors.Join(out.Encode(answer), in.Decode(new(bool)))
	}
	return errors.Join(err, l.close(), out.Encode(true))
}

// contend counts the pairs that were complete when the turn ended, but for those of the time before
// it is counted: connections are cold, and processes have not heard of one another.
func contend(ctx context.Context, l locker, what Task) (Answer, error) {
	counted := time.Now().Add(what.Warm)
	ctx, cancel := context.WithDeadline(ctx, counted.Add(what.For))
	defer cancel()
	all := make([]Answer, what.Goroutines)
	var g errgroup.Group
	for n := range all {
		g.Go(func() error { return what.again(ctx, l, n, counted, &all[n]) })
	}
	if err := g.Wait(); err != nil {
		return Answer{}, err
	}
	sum := Answer{Waits: []int64{}}
	for _, a := range all {
		sum.Pairs += a.Pairs
		sum.Waits = append(sum.Waits, a.Waits...)
	}
	return sum, nil
}

// again is one goroutine's turn.
func (what Task) again(ctx context.Context, l locker, goroutine int, counted time.Time, a *Answer) error {
	for n := 0; ; n++ {
		key := what.key(goroutine, n)
		asked := time.Now()
		unlock, err := l.lock(ctx, goroutine, key)
		wait := time.Since(asked)
		if ctx.Err() != nil && err != nil {
			a.cut(wait, what.For)
			return nil
		}
		if err != nil {
			return err
		}
		if what.Hold > 0 {
			time.Sleep(what.Hold)
		}
		if err := unlock(); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if time.Now().After(counted) {
			a.Pairs++
			a.Waits = append(a.Waits, wait.Microseconds())
		}
	}
}

// key is that of a goroutine's nth pair. Of several keys that all want, each comes in turn, and
// processes begin with different ones.
func (what Task) key(goroutine, n int) string {
	if what.Own {
		return what.Way.Own(what.Process, goroutine, n)
	}
	return what.Way.Shared((what.Process + goroutine + n) % max(1, what.Shared))
}

// cut takes down a wait that ended with the turn, if it was long. Otherwise a process that starves
// would have waited for nothing. Short ones say nothing: each turn has one for each goroutine.
func (a *Answer) cut(wait, turn time.Duration) {
	if wait >= turn/2 {
		a.Waits = append(a.Waits, wait.Microseconds())
	}
}
