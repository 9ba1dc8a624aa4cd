package waitq_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

// A hint that comes while a poll is under way may be about what the poll did not see any more.
func TestASignalDuringAPollIsNotForgotten(t *testing.T) {
	for name, call := range map[string]func(*waitq.Poller){
		"Soon": func(p *waitq.Poller) { p.Soon("k") },
		"Now":  func(p *waitq.Poller) { p.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var polls []time.Duration
				began := time.Now()
				var p *waitq.Poller
				p = &waitq.Poller{
					Min: time.Second, Max: time.Minute,
					Wanted: func(string) bool { return true },
					Read: func(context.Context, []string) (map[string]waitq.Observed, error) {
						polls = append(polls, time.Since(began))
						if len(polls) == 1 {
							call(p)
						}
						return map[string]waitq.Observed{"k": {Remaining: time.Hour}}, nil
					},
					Found: func(string, waitq.Observed) {},
				}
				p.Start()
				defer p.Stop()
				p.Watch("k", waitq.Observed{})
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				if len(polls) != 2 || polls[1] != polls[0] {
					t.Errorf("polled after %s, want twice at the same time", polls)
				}
			})
		})
	}
}
