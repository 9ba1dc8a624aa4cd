package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// victim is the tick, from 1, whose worker is killed in the middle of it.
const victim = 3

// watch starts workers, prints what they do, and kills one of them.
func watch(ctx context.Context, cfg settings, out io.Writer) (err error) {
	db, err := open(ctx, cfg.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{cfg: cfg, out: out, events: make(chan event), workers: make(map[string]*exec.Cmd)}
	defer w.wait()
	defer cancel() // which ends the workers
	fmt.Fprintf(out, "rowlock cron on %s: %d processes, one run a tick\n\n", db.Product(ctx), cfg.processes)
	for i := range cfg.processes {
		if err := w.start(ctx, db, string(rune('A'+i))); err != nil {
			return err
		}
	}
	return w.follow(ctx)
}

type watcher struct {
	cfg     settings
	out     io.Writer
	events  chan event
	workers map[string]*exec.Cmd
	all     sync.WaitGroup
	begun   map[time.Time]string // by whom
	done    int
}

// start starts this very program as a worker.
func (w *watcher) start(ctx context.Context, db *source.DB, name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-db", db.Source, "-name", name, "-schedule", w.cfg.schedule, "-takes", w.cfg.takes.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	w.workers[name] = cmd
	w.all.Go(func() {
		for in := json.NewDecoder(lines); ; {
			var e event
			if in.Decode(&e) != nil {
				_ = cmd.Wait()
				return
			}
			select {
			case w.events <- e:
			case <-ctx.Done():
			}
		}
	})
	return nil
}

func (w *watcher) wait() { w.all.Wait() }

// follow prints what the workers say, until enough ticks are done.
func (w *watcher) follow(ctx context.Context) error {
	w.begun = make(map[time.Time]string)
	for w.done < w.cfg.ticks {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-w.events:
			if err := w.heard(e); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(w.out, "\n%d ticks, each run once.\n", w.done)
	return nil
}

func (w *watcher) heard(e event) error {
	at := e.Tick.Format("15:04:05")
	before, again := w.begun[e.Tick]
	switch e.What {
	case "runs":
		w.begun[e.Tick] = e.Worker
		if again {
			fmt.Fprintf(w.out, "%s  %s picks up what %s has left\n", at, e.Worker, before)
			return nil
		}
		fmt.Fprintf(w.out, "%s  %s runs\n", at, e.Worker)
		if len(w.begun) == victim && len(w.workers) > 1 {
			return w.kill(e)
		}
	case "done":
		w.done++
		fmt.Fprintf(w.out, "%s  %s is done\n", at, e.Worker)
	case "skipped":
		fmt.Fprintf(w.out, "%s  %s skips: %s has run it\n", at, e.Worker, e.By)
	default:
		return fmt.Errorf("%s, worker %s: %s", at, e.Worker, e.By)
	}
	return nil
}

func (w *watcher) kill(e event) error {
	fmt.Fprintf(w.out, "%s  %s is killed (SIGKILL) in the middle; its lease ends in %s\n", e.Tick.Format("15:04:05"), e.Worker, ttl)
	cmd := w.workers[e.Worker]
	delete(w.workers, e.Worker)
	return cmd.Process.Kill()
}
