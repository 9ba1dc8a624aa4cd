package scrape

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// calm is what no operator is to be told of, for longer than any rule looks back.
var calm = map[string]func(f *fault){
	"a leader and its candidates": (*fault).candidates,
	"a job that has just begun":   (*fault).began,
	"a holder with MinHold":       (*fault).kept,
	"a process ends by Close":     (*fault).closed,
}

func TestNoAlertFiresWhereNothingIsWrong(t *testing.T) {
	program(t, "promtool")
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		var recorded []*recording
		for name, happens := range calm {
			r := newRecording(s, name)
			recorded = append(recorded, r)
			happens(&fault{r, s})
		}
		judge(s.T, recorded)
	})
}

// The candidates wait for as long as the leader lives.
func (f *fault) candidates() {
	ctx, stop := context.WithCancel(context.Background())
	leads, ended := make(chan struct{}, 3), make(chan error, 3)
	for i := range cap(ended) {
		c := f.lives(servertest.Numbered(i))
		go func() {
			ended <- election.Run(ctx, c, "leader", func(ctx context.Context, _ *rowlock.Lock) error {
				leads <- struct{}{}
				<-ctx.Done()
				return nil
			})
		}()
	}
	servertest.Await(f, time.Minute, leads, "a leader")
	f.s.Eventually("the candidates to ask", func() bool { return f.sum("rowlock_lock_contended_total") >= 2 })
	f.goOn(30 * time.Minute)
	f.wants()
	stop()
	for range cap(ended) {
		servertest.Await(f, time.Minute, ended, "a candidate")
	}
}

// Its calls wait from the first page on.
func (f *fault) began() {
	holder, c := f.lives("a"), f.lives("b")
	f.s.Take(holder, "began")
	ctx, cancel := context.WithCancel(f.s.Context())
	ended := servertest.Aside(func() error { _, err := c.Lock(ctx, "began"); return err })
	f.until("rowlock_call_waiting", 1)
	f.wants()
	f.goOn(9 * time.Minute)
	f.wants()
	cancel()
	servertest.Await(f, time.Minute, ended, "the call")
}

// Another replica's tick comes while MinHold keeps the key, and gets it when it has ended.
func (f *fault) kept() {
	a, b := f.lives("a"), f.lives("b")
	f.before()
	f.s.OK(f.s.Take(a, "kept", rowlock.MinHold(100*time.Millisecond)).Unlock(f.s.Context()))
	f.s.Eventually("MinHold to end", func() bool {
		l, err := b.TryLock(f.s.Context(), "kept")
		return err == nil && l.Unlock(f.s.Context()) == nil
	})
	f.goOn(15 * time.Minute)
	f.wants()
}

func (f *fault) closed() {
	c := f.lives("a")
	other := f.lives("b")
	f.before()
	f.s.Take(c, "closed")
	waits(f.s, other, "closed")
	f.scrape()
	f.s.OK(c.Close())
	f.targets[0].gone = true
	f.until("rowlock_lock_acquired_total", 1)
	f.goOn(15 * time.Minute)
	f.wants()
}
