package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A hint that comes while a poll is under way may be about what the poll did not see any more.
func TestASignalDuringAPollIsNotForgotten(t *testing.T) {
	for name, call := range map[string]func(*poller){
		"Soon": func(p *poller) { p.Soon("k") },
		"Now":  func(p *poller) { p.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var polls []time.Duration
				began := time.Now()
				var p *poller
				p = newPoller(polling{
					Min: time.Second, Max: time.Minute,
					Wanted: func(string) bool { return true },
					Read: func(context.Context, []string) (map[string]observed, error) {
						polls = append(polls, time.Since(began))
						if len(polls) == 1 {
							call(p)
						}
						return map[string]observed{"k": {Remaining: time.Hour}}, nil
					},
					Found: func(string, observed) {},
				})
				defer p.Stop()
				p.Watch("k", observed{})
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				if len(polls) != 2 || polls[1] != polls[0] {
					t.Errorf("polled after %s, want twice at the same time", polls)
				}
			})
		})
	}
}
