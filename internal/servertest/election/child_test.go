package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// TestChildAtWork is the child process.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{
		"candidate": stands, "plain": plain, "preferred": preferred,
	})
}

// event is what a child tells. Its times are those of the machine, which all processes share.
type event struct {
	Did  string // "stands", "leads", "told", "ended", "wrote", "fenced", "failed", "stopped"
	Term rowlock.Token
	N    int64 // of a write: how many there have been
	Why  string
	From time.Time // when it began
	At   time.Time
}

// worker is a candidate in a process of its own.
type worker struct {
	*servertest.Worker
	mu     sync.Mutex
	last   *rowlock.Lock // of the present term, or the last one
	resign chan struct{}
	busy   chan struct{} // closed when leaders are to write as much as they can
}

func stands(c *servertest.Worker) error { return stand(c) }

func plain(c *servertest.Worker) error { return stand(c, election.Prefer(false)) }

func preferred(c *servertest.Worker) error { return stand(c, election.Prefer(true)) }

// stand runs a candidate until the test closes its input, and does what the test says meanwhile.
func stand(c *servertest.Worker, opts ...election.Option) error {
	w := &worker{Worker: c, resign: make(chan struct{}, 1), busy: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer stop()
		for line := c.Next(); line != ""; line = c.Next() {
			w.obey(line, stop)
		}
	}()
	opts = append(opts, election.Rest(300*time.Millisecond), election.OnError(func(err error) {
		w.tell(event{Did: "failed", Why: err.Error(), At: time.Now()})
	}))
	w.tell(event{Did: "stands", At: time.Now()})
	err := election.Run(ctx, c.Locks, "boss", w.lead, opts...)
	e := event{Did: "stopped", At: time.Now()}
	if err != nil {
		e.Why = err.Error()
	}
	w.tell(e)
	return nil
}

func (w *worker) obey(line string, stop func()) {
	switch line {
	case "write":
		w.write()
	case "busy":
		close(w.busy)
	case "resign": // now, or as soon as it leads
		select {
		case w.resign <- struct{}{}:
		default:
		}
	case "stop":
		stop()
	}
}

// lead writes if it is to be busy, and ends when it is told to.
func (w *worker) lead(ctx context.Context, l *rowlock.Lock) error {
	w.mu.Lock()
	w.last = l
	w.mu.Unlock()
	w.tell(event{Did: "leads", Term: l.Token(), At: time.Now()})
	busy := w.busy
	for {
		select {
		case <-busy:
			w.write()
			busy = nil
		case <-time.After(3 * time.Millisecond):
			busy = w.busy
		case <-w.resign:
			w.tell(event{Did: "ended", Term: l.Token(), At: time.Now()})
			return nil
		case <-ctx.Done():
			w.tell(event{
				Did: "told", Term: l.Token(), Why: context.Cause(ctx).Error(), At: time.Now(),
			})
			w.write() // a leader that has not noticed
			w.tell(event{Did: "ended", Term: l.Token(), At: time.Now()})
			return ctx.Err()
		}
	}
}

// write counts one more write of the present term, or the last one, behind its fence.
func (w *worker) write() {
	w.mu.Lock()
	l := w.last
	w.mu.Unlock()
	e := event{Did: "wrote", Term: l.Token(), From: time.Now()}
	var err error
	e.N, err = w.count(l)
	e.At = time.Now()
	switch {
	case errors.Is(err, rowlock.ErrFenced):
		e.Did, e.Why = "fenced", err.Error()
	case err != nil:
		e.Did, e.Why = "failed", err.Error()
	}
	w.tell(e)
}

func (w *worker) count(l *rowlock.Lock) (n int64, err error) {
	ctx := context.Background()
	tx, err := w.DB.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if err := l.Fence(ctx, tx); err != nil {
		return 0, err
	}
	if err := w.Run(tx, `UPDATE `+w.Table+` SET n = n + 1 WHERE id = 1`); err != nil {
		return 0, err
	}
	if err := tx.QueryRowContext(ctx, `SELECT n FROM `+w.Table+` WHERE id = 1`).Scan(&n); err != nil {
		return 0, err
	}
	return n, tx.Commit()
}

func (w *worker) tell(e event) {
	text, _ := json.Marshal(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Println("child:", string(text))
}
