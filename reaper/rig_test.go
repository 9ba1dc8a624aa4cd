package reaper_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// sweeper is a store made of one function.
type sweeper func(ctx context.Context, opts lease.SweepOptions) (int64, error)

func (f sweeper) Sweep(ctx context.Context, opts lease.SweepOptions) (int64, error) {
	return f(ctx, opts)
}

// recorder notes when it was told to sweep, by whom and how.
type recorder struct {
	mu     sync.Mutex
	sweeps []sweep
}

type sweep struct {
	by   string
	at   time.Time
	opts lease.SweepOptions
}

// as returns a sweeper that one process calls.
func (r *recorder) as(process string) sweeper {
	return func(_ context.Context, opts lease.SweepOptions) (int64, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sweeps = append(r.sweeps, sweep{process, time.Now(), opts})
		return 1, nil
	}
}

func (r *recorder) all() []sweep {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sweeps
}

// office is what processes are elected to, one at a time.
type office struct {
	mu       sync.Mutex
	holder   string
	depose   context.CancelFunc
	bids     int
	resigned []string
}

// elect is the reaper.Elect of one process.
func (o *office) elect(process string) func(context.Context) (context.Context, func(), error) {
	return func(context.Context) (context.Context, func(), error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.bids++
		if o.holder != "" {
			return nil, nil, &lease.HeldError{Key: "office", Note: o.holder}
		}
		elected, depose := context.WithCancel(context.Background())
		o.holder, o.depose = process, depose
		return elected, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			depose()
			o.resigned = append(o.resigned, process)
			if o.holder == process {
				o.holder = ""
			}
		}, nil
	}
}

// lose takes the office from its holder, who is told, and gives it to another.
func (o *office) lose(to string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.depose()
	o.holder = to
}

func (o *office) state() (bids int, resigned string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bids, fmt.Sprint(o.resigned)
}

// journal is a log that a test can read.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// quiet is a log in which nothing worth a warning may stand.
func quiet(t *testing.T) *slog.Logger {
	var j journal
	t.Cleanup(func() {
		if s := j.String(); s != "" {
			t.Errorf("logged: %s", s)
		}
	})
	return j.logger()
}
