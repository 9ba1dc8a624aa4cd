package waitq_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

// A hint that comes while a look is under way may be about what the look did not see any more.
func TestACallDuringALookIsNotForgotten(t *testing.T) {
	for name, call := range map[string]func(*waitq.Poller){
		"Soon": func(p *waitq.Poller) { p.Soon("k") },
		"Now":  func(p *waitq.Poller) { p.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var looks []time.Duration
				began := time.Now()
				var p *waitq.Poller
				p = &waitq.Poller{
					Min: time.Second, Max: time.Minute,
					Wanted: func(string) bool { return true },
					Ask: func(context.Context, []string) (map[string]waitq.Sight, error) {
						looks = append(looks, time.Since(began))
						if len(looks) == 1 {
							call(p)
						}
						return map[string]waitq.Sight{"k": {Remaining: time.Hour}}, nil
					},
					Seen: func(string, waitq.Sight) {},
				}
				p.Start()
				defer p.Stop()
				p.Watch("k", waitq.Sight{})
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				if len(looks) != 2 || looks[1] != looks[0] {
					t.Errorf("looked after %s, want twice at the same time", looks)
				}
			})
		})
	}
}
