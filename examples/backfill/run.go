package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/rowlockdb/rowlock/examples/internal/command"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// look is how often the progress is read.
const look = 100 * time.Millisecond

// run makes the rows, has workers change them, and counts what came of it.
func run(ctx context.Context, cfg settings, out io.Writer) (err error) {
	db, err := source.OpenOwn(ctx, cfg.db, "backfill")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Remove(ctx, "products", "shards")) }()
	j := &job{cfg: cfg, out: out, tables: &tables{db.DB, db.Prefix}, ended: make(chan ending)}
	fmt.Fprintf(out, "rowlock backfill on %s: %d rows in %d shards, %d workers, %d of them killed\n",
		db.Product(ctx), cfg.rows, cfg.shards, cfg.workers, cfg.kills)
	if err := j.fill(ctx, cfg.rows, cfg.shards); err != nil {
		return err
	}
	j.began, j.shown = time.Now(), time.Now()
	if err := j.work(ctx); err != nil {
		return err
	}
	took := time.Since(j.began)
	left, twice, err := j.wrong(ctx)
	if err != nil {
		return err
	}
	if left+twice > 0 {
		return fmt.Errorf("PROMISE BROKEN: %d rows were left out, and %d changed more than once", left, twice)
	}
	if command.IsTerminal(out) {
		fmt.Fprintln(out) // below the bar
	}
	fmt.Fprintf(out, "✓ %d rows, %d workers killed, nothing twice, nothing left out: %.0f rows a second\n",
		cfg.rows, j.killed, float64(cfg.rows)/took.Seconds())
	return nil
}

// job is a backfill that is under way.
type job struct {
	*tables
	cfg     settings
	out     io.Writer
	bar     *progressbar.ProgressBar
	workers []*exec.Cmd // oldest first
	ended   chan ending
	killed  int
	began   time.Time
	shown   time.Time // when a line was printed
}

// ending is a worker that has ended.
type ending struct {
	worker *exec.Cmd
	err    error
}

// work starts workers, kills the oldest one each time that another part of the rows is done, and
// waits until the others have found that nothing is left.
func (j *job) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer j.await()
	defer cancel() // which kills those that are left
	for range j.cfg.workers {
		if err := j.start(ctx); err != nil {
			return err
		}
	}
	j.bar = j.newBar()
	defer func() { _ = j.bar.Exit() }()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for len(j.workers) > 0 {
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case e := <-j.ended:
			j.forget(e.worker)
			err = e.err
		case <-tick.C:
			err = j.look(ctx)
		}
		if err != nil {
			return err
		}
	}
	return j.bar.Finish()
}

// start starts this very program as a worker.
func (j *job) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w := exec.CommandContext(ctx, self, "-worker", "-db", j.Source, "-prefix", j.prefix,
		"-rows", strconv.FormatInt(j.cfg.rows, 10), "-batch", strconv.FormatInt(j.cfg.batch, 10),
		"-shards", strconv.Itoa(j.cfg.shards))
	w.Stdout, w.Stderr = os.Stderr, os.Stderr
	if err := w.Start(); err != nil {
		return err
	}
	j.workers = append(j.workers, w)
	go func() { j.ended <- ending{w, w.Wait()} }()
	return nil
}

// look shows the progress, and kills the oldest worker if it is time.
func (j *job) look(ctx context.Context) error {
	done, err := j.done(ctx)
	if err != nil {
		return err
	}
	j.show(done)
	due := j.killed < j.cfg.kills && done*int64(j.cfg.kills+1) >= j.cfg.rows*int64(j.killed+1)
	if !due || done == j.cfg.rows {
		return nil
	}
	oldest := j.workers[0]
	if err := oldest.Process.Kill(); err != nil {
		return err
	}
	for e := range j.ended {
		j.forget(e.worker)
		if e.worker == oldest {
			break
		}
		if e.err != nil {
			return e.err
		}
	}
	j.killed++
	return j.start(ctx)
}

func (j *job) forget(w *exec.Cmd) {
	for i := range j.workers {
		if j.workers[i] == w {
			j.workers = append(j.workers[:i], j.workers[i+1:]...)
			return
		}
	}
}

// await waits for workers that are being killed.
func (j *job) await() {
	for len(j.workers) > 0 {
		j.forget((<-j.ended).worker)
	}
}

// newBar is a bar on a terminal, with an estimate of what is left.
func (j *job) newBar() *progressbar.ProgressBar {
	return progressbar.NewOptions64(j.cfg.rows, progressbar.OptionSetWriter(j.out),
		progressbar.OptionSetDescription("rows"), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true), progressbar.OptionSetVisibility(command.IsTerminal(j.out)))
}

// show moves the bar, or prints a line every other second.
func (j *job) show(done int64) {
	_ = j.bar.Set64(done)
	if command.IsTerminal(j.out) || time.Since(j.shown) < 2*time.Second {
		return
	}
	j.shown = time.Now()
	left := time.Since(j.began).Seconds() * float64(j.cfg.rows-done) / float64(max(done, 1))
	fmt.Fprintf(j.out, "%d rows done, %d workers killed, about %.0f s left\n", done, j.killed, left)
}
