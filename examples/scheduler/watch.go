package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// patience is how long a leader may be missing, beside the TTL.
const patience = 30 * time.Second

// watcher starts candidates, ends their leaders, and prints what it sees.
type watcher struct {
	cfg    settings
	db     *source.Own
	out    io.Writer
	events chan event
	all    sync.WaitGroup
	by     map[string]*exec.Cmd
	n      int // of candidates so far
}

func watch(ctx context.Context, cfg settings, out io.Writer) (err error) {
	db, err := source.OpenOwn(ctx, cfg.db, "scheduler")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Remove(ctx, planTable)) }()
	if _, err := db.ExecContext(ctx, `CREATE TABLE `+db.Table(planTable)+
		` (n BIGINT PRIMARY KEY, term BIGINT NOT NULL)`); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{
		cfg: cfg, db: db, out: out, events: make(chan event, 1000), by: make(map[string]*exec.Cmd),
	}
	defer w.all.Wait()
	defer cancel() // which ends the candidates
	fmt.Fprintf(out, "rowlock scheduler on %s: %d processes, one leads; leases of %s\n\n",
		db.Product(ctx), cfg.processes, cfg.ttl)
	for range cfg.processes {
		if err := w.start(ctx); err != nil {
			return err
		}
	}
	return w.rounds(ctx)
}

// rounds ends leaders and measures how long it takes until the next leads.
func (w *watcher) rounds(ctx context.Context) error {
	leads, err := w.await(ctx, "leads")
	if err != nil {
		return err
	}
	w.say("%s leads, term %d", leads.Name, leads.Term)
	var killed, asked []time.Duration
	for i := range 2 * w.cfg.rounds {
		signal, how, times := os.Signal(os.Kill), "killed (SIGKILL)", &killed
		if i%2 == 1 {
			signal, how, times = os.Interrupt, "asked to end (SIGINT)", &asked
		}
		// It works for a while. At a random moment, its lease was renewed any part of TTL/3 ago.
		if err := sleep(ctx, 300*time.Millisecond+rand.N(w.cfg.ttl/3)); err != nil {
			return err
		}
		began := time.Now()
		if err := w.by[leads.Name].Process.Signal(signal); err != nil {
			return err
		}
		next, err := w.await(ctx, "leads")
		switch {
		case err != nil:
			return err
		case next.Term <= leads.Term:
			return fmt.Errorf("PROMISE BROKEN: term %d follows term %d", next.Term, leads.Term)
		}
		took := next.At.Sub(began)
		*times = append(*times, took)
		w.say("%s is %s; %s leads %s later, term %d", leads.Name, how, next.Name,
			took.Round(time.Millisecond), next.Term)
		leads = next
		if err := w.start(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(w.out, "\nanother led after\n  kill -9        %s\n  graceful stop  %s\n",
		spread(killed), spread(asked))
	return w.check(ctx)
}

// check reads what the leaders have written: terms never fall.
func (w *watcher) check(ctx context.Context) error {
	var terms []int64
	if err := w.db.SelectContext(ctx, &terms,
		`SELECT term FROM `+w.db.Table(planTable)+` ORDER BY n`); err != nil {
		return err
	}
	if !slices.IsSorted(terms) {
		return fmt.Errorf("PROMISE BROKEN: an older term has written after a later one: %d", terms)
	}
	fmt.Fprintf(w.out, "\n✓ %d writes of %d terms, none after a later term's.\n",
		len(terms), len(slices.Compact(terms)))
	return nil
}

// start starts this very program as a candidate.
func (w *watcher) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.n++
	name := fmt.Sprintf("candidate-%d", w.n)
	cmd := exec.CommandContext(ctx, self, "-db", w.db.Source, "-prefix", w.db.Prefix, "-name", name,
		"-ttl", w.cfg.ttl.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	lines, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	w.by[name] = cmd
	w.all.Go(func() { // until the candidate has ended
		defer func() { _ = cmd.Wait() }()
		for in := json.NewDecoder(lines); ; {
			var e event
			if in.Decode(&e) != nil {
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

// await returns the next event of a kind.
func (w *watcher) await(ctx context.Context, what string) (event, error) {
	late := time.After(w.cfg.ttl + patience)
	for {
		select {
		case e := <-w.events:
			if e.What == what {
				return e, nil
			}
			if e.What == "failed" {
				w.say("%s: %s", e.Name, e.Why)
			}
		case <-late:
			return event{}, fmt.Errorf("no candidate %s within %s", what, w.cfg.ttl+patience)
		case <-ctx.Done():
			return event{}, ctx.Err()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *watcher) say(format string, args ...any) {
	fmt.Fprintf(w.out, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// spread describes times in one line.
func spread(all []time.Duration) string {
	slices.Sort(all)
	at := func(p int) time.Duration {
		return all[min(len(all)*p/100, len(all)-1)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("min %s, p50 %s, p90 %s, max %s (%d times)",
		at(0), at(50), at(90), at(100), len(all))
}
