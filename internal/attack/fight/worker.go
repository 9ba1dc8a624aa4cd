//go:build linux

package fight

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

const JobVariable = "ROWLOCK_ATTACK_JOB"

// Job is what a worker process is told, as JSON in its environment.
type Job struct {
	Database Database
	Etcd     string
	Group    []string `json:",omitempty"` // data source names of a MySQL group's members
	Plan     Plan
	Worker   int
	Life     int
	Record   string
}

// worker is a client process.
type worker struct {
	Job
	name   string
	db     *sql.DB
	plain  *rowlock.Client
	fair   *rowlock.Client
	family family
	// The forgetful write in these sessions, and take locks by this client.
	sessions *sql.DB
	sections *rowlock.Client
	pgx      *pgxpool.Pool // on PostgreSQL
	bridge   *paxosbridge.Bridge
	record   *history.Recorder
	serial   atomic.Int64
	pipe     *pipe
}

func Work(text string) (err error) {
	w := new(worker)
	if err := json.Unmarshal([]byte(text), &w.Job); err != nil {
		return err
	}
	w.name = fmt.Sprintf("%d.%d", w.Worker, w.Life)
	if w.record, err = history.Create(w.Record); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.record.Close()) }()
	before := runtime.NumGoroutine()
	defer func() { w.leaks(before) }()
	w.pipe = newPipe()
	defer w.pipe.drain()
	closing, err := w.enter()
	defer func() { err = errors.Join(err, closing.close()) }()
	if err != nil {
		return err
	}
	if err := w.ready(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { w.watchProcess(ctx) })
	watching.Go(func() { w.watchDatabase(ctx) })
	watching.Go(func() { w.strays(ctx) })
	for n := range w.Plan.Phases {
		w.run(n)
	}
	cancel()
	watching.Wait()
	return nil
}

// config differs from worker to worker, because clients of every kind share a table. Dead rows are
// swept as soon as may be, so that keys are made anew.
func (w *worker) config() *rowlock.Config {
	c := &rowlock.Config{
		TTL:     w.Plan.TTL,
		PollMax: 50 * time.Millisecond,
		Logger:  slog.New(slog.DiscardHandler),
		Reaper:  rowlock.ReaperConfig{Every: 500 * time.Millisecond, Retention: time.Second},
	}
	if w.Worker == 1 {
		c.Strategy = rowlock.Insert
	}
	if w.Worker == 2 {
		c.Hints = rowlock.HintsOff
	}
	if w.Worker == 3 {
		c.Logger = slog.New(w.pipe)
	}
	return c
}

// run is one phase, to its end.
func (w *worker) run(n int) {
	p := &w.Plan.Phases[n]
	if Now() >= p.To {
		return
	}
	ctx := context.Background()
	Sleep(ctx, time.Duration(p.From-Now()))
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p.To-Now()))
	defer cancel()
	var wg sync.WaitGroup
	for i := range p.Crews {
		for g := range p.Crews[i].Goroutines {
			h := &hand{worker: w, phase: n, crew: &p.Crews[i], keys: p.Crews[i].Keys, client: w.plain}
			h.rng = w.Plan.Stream("hand", w.Worker, w.Life, n, i, g)
			if h.crew.Fair {
				h.client = w.fair
			}
			if h.crew.Own {
				h.keys = []string{fmt.Sprintf("%s%s", h.keys[0], w.name)}
			}
			wg.Go(func() { h.work(ctx) })
		}
	}
	wg.Wait()
}

// hand is a goroutine at work.
type hand struct {
	*worker
	phase  int
	crew   *Crew
	keys   []string
	client *rowlock.Client
	rng    *rand.Rand
	act    string
}

// work acts until the phase is over.
func (h *hand) work(ctx context.Context) {
	total := 0
	for _, a := range h.crew.Acts {
		total += a.Of
	}
	for ctx.Err() == nil {
		n := h.rng.IntN(total)
		for _, a := range h.crew.Acts {
			if n -= a.Of; n < 0 {
				h.act = a.Act
				acts[a.Act](ctx, h)
				break
			}
		}
	}
}

func (h *hand) key() string { return h.keys[h.rng.IntN(len(h.keys))] }

// upTo is a random time.
func (h *hand) upTo(d time.Duration) time.Duration { return time.Duration(h.rng.Int64N(int64(d))) }
