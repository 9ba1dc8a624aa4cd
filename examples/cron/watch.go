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

const names = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" // of workers

// watch starts workers, prints what they do, and kills one of them.
func watch(ctx context.Context, cfg settings, out io.Writer) (err error) {
	db, err := source.OpenOwn(ctx, cfg.db, "cron")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Remove(ctx, runs)) }()
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{cfg: cfg, out: out, events: make(chan event), workers: make(map[string]*exec.Cmd)}
	defer w.all.Wait()
	defer cancel() // which ends the workers
	fmt.Fprintf(out, "rowlock cron on %s: %d processes, one run a tick\n\n", db.Product(ctx), cfg.processes)
	for i := range cfg.processes {
		if err := w.start(ctx, db, names[i:i+1]); err != nil {
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
	done    map[time.Time]string
	killed  string
}

// start starts this very program as a worker.
func (w *watcher) start(ctx context.Context, db *source.Own, name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-db", db.Source, "-prefix", db.Prefix, "-name", name,
		"-schedule", w.cfg.schedule, "-takes", w.cfg.takes.String())
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
			ended := in.Decode(&e) != nil
			if ended {
				e = event{Worker: name, What: "ended", By: fmt.Sprint(cmd.Wait())}
			}
			select {
			case w.events <- e:
			case <-ctx.Done():
			}
			if ended {
				return
			}
		}
	})
	return nil
}

// follow prints what the workers say, until enough ticks are done.
func (w *watcher) follow(ctx context.Context) error {
	w.begun, w.done = make(map[time.Time]string), make(map[time.Time]string)
	fmt.Fprintln(w.out, "tick      after")
	for len(w.done) < w.cfg.ticks {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-w.events:
			if err := w.heard(e); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(w.out, "\n✓ %d ticks, each done once.\n", len(w.done))
	return nil
}

// say prints a line about a tick, with how long after it that happened.
func (w *watcher) say(at time.Time, format string, args ...any) {
	fmt.Fprintf(w.out, "%s %4.1f s  %s\n", at.Format("15:04:05"), time.Since(at).Seconds(), fmt.Sprintf(format, args...))
}

func (w *watcher) heard(e event) error {
	switch e.What {
	case "runs":
		return w.heardRuns(e)
	case "done":
		if by := w.done[e.Tick]; by != "" {
			return fmt.Errorf("PROMISE BROKEN: the tick of %s was done by %s and by %s", e.Tick.Format("15:04:05"), by, e.Worker)
		}
		w.done[e.Tick] = e.Worker
		w.say(e.Tick, "%s is done", e.Worker)
	case "skipped":
		w.say(e.Tick, "%s skips: %s has run it", e.Worker, e.By)
	case "ended":
		if e.Worker != w.killed {
			return fmt.Errorf("worker %s has ended: %s", e.Worker, e.By)
		}
	default:
		return fmt.Errorf("worker %s %s: %s", e.Worker, e.What, e.By)
	}
	return nil
}

func (w *watcher) heardRuns(e event) error {
	before, again := w.begun[e.Tick]
	w.begun[e.Tick] = e.Worker
	if again {
		w.say(e.Tick, "%s picks up what %s has left", e.Worker, before)
		return nil
	}
	w.say(e.Tick, "%s runs", e.Worker)
	if len(w.begun) != victim {
		return nil
	}
	w.killed = e.Worker
	w.say(e.Tick, "%s is killed (SIGKILL) in the middle; its lease ends in %s", e.Worker, ttl)
	return w.workers[e.Worker].Process.Kill()
}
