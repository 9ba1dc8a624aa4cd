package deadlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// TestChildAtWork is the child process.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{"chains": chains})
}

// order is what a child is told: a chain of calls is to hold a key, to wait for keys with the
// context of what it holds, or to unlock all that it has.
type order struct {
	Do    string // "hold", "wait", "together" or "unlock"
	Chain string
	Keys  []string
}

// event is what became of an order.
type event struct {
	Chain  string
	Did    string                   // "held", "granted", "deadlock", "unlocked", or an error
	Tokens map[string]rowlock.Token // of the locks, or of the cycle
	Cycle  []string                 // the keys that are waited for, the chain's own first
	Lost   bool                     // a lock of the chain was lost
	Began  time.Time
	At     time.Time
}

// worker are the chains of a child.
type worker struct {
	*servertest.Worker
	mu    sync.Mutex
	locks map[string][]*rowlock.Lock
}

func chains(c *servertest.Worker) error {
	w := &worker{Worker: c, locks: make(map[string][]*rowlock.Lock)}
	var calls sync.WaitGroup
	defer calls.Wait()
	for line := c.Next(); line != ""; line = c.Next() {
		var o order
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			return err
		}
		calls.Go(func() { w.do(o) })
	}
	return nil
}

func (w *worker) do(o order) {
	e := event{Chain: o.Chain, Tokens: make(map[string]rowlock.Token), Began: time.Now()}
	var err error
	switch o.Do {
	case "hold":
		e.Did = "held"
		err = w.get(context.Background(), o, &e)
	case "wait", "together":
		e.Did = "granted"
		err = w.get(w.ctx(o.Chain), o, &e)
	case "unlock":
		e.Did = "unlocked"
		err = w.unlock(o.Chain)
	}
	e.ended(w, err)
	text, _ := json.Marshal(e)
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Println("child:", string(text))
}

func (e *event) ended(w *worker, err error) {
	e.At = time.Now()
	var d *rowlock.DeadlockError
	switch {
	case errors.As(err, &d):
		e.Did = "deadlock"
		for _, l := range d.Cycle {
			e.Cycle, e.Tokens[l.Key] = append(e.Cycle, l.Key), l.Token
		}
	case err != nil:
		e.Did = err.Error()
	}
	e.Lost = errors.Is(err, rowlock.ErrLost) || errors.Is(context.Cause(w.ctx(e.Chain)), rowlock.ErrLost)
}

// ctx is that of the lock that the chain took first.
func (w *worker) ctx(chain string) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if locks := w.locks[chain]; len(locks) > 0 {
		return locks[0].Context()
	}
	return context.Background()
}

func (w *worker) get(ctx context.Context, o order, e *event) error {
	var got []*rowlock.Lock
	if o.Do == "together" {
		all, err := w.Locks.LockAll(ctx, o.Keys)
		if err != nil {
			return err
		}
		for _, key := range o.Keys {
			got = append(got, all.Lock(key))
		}
	} else {
		l, err := w.Locks.Lock(ctx, o.Keys[0])
		if err != nil {
			return err
		}
		got = append(got, l)
	}
	for _, l := range got {
		e.Tokens[l.Key()] = l.Token()
	}
	w.mu.Lock()
	w.locks[o.Chain] = append(w.locks[o.Chain], got...)
	w.mu.Unlock()
	return nil
}

func (w *worker) unlock(chain string) error {
	w.mu.Lock()
	locks := w.locks[chain]
	delete(w.locks, chain)
	w.mu.Unlock()
	var all []string
	for _, l := range locks {
		if err := l.Unlock(context.Background()); err != nil {
			all = append(all, err.Error())
		}
	}
	if len(all) > 0 {
		return errors.New(strings.Join(all, "; "))
	}
	return nil
}
