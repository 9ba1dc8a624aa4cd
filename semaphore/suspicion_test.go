package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/semaphore"
)

// Who stands in line waits for permits, which those before do not hold.
func TestALineIsNoSuspicion(t *testing.T) {
	for name, isFair := range map[string]bool{"in order": true, "": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *clienttest.Script) {
				var clients [2]*rowlock.Client
				var sems [2]*semaphore.Semaphore
				for i := range clients {
					cfg := &rowlock.Config{Fair: isFair}
					cfg.Reaper.Off = true
					cfg.Hooks.Suspected = func(_ context.Context, by rowlock.Suspicion) {
						t.Errorf("suspected: %+v", by)
					}
					clients[i] = clienttest.Client(t, s, cfg)
					var opts []semaphore.Option
					if isFair {
						opts = append(opts, semaphore.InOrder())
					}
					sems[i] = of(t, clients[i], 1, opts...)
				}
				all := take(t, process(t, s, 1), 1)
				first := waits(t, t.Context(), sems[0], 1)
				second := waits(t, t.Context(), sems[1], 1)
				key := clienttest.Take(t, clients[1], "k")
				by := clienttest.Wait(t, clients[0], "k")
				time.Sleep(time.Minute)
				clienttest.Unlock(t, key)
				got := <-by
				ok(t, got.Err)
				clienttest.Unlock(t, got.Lock)
				ok(t, all.Release(t.Context()))
				p := granted(t, first, 10*time.Second)
				ok(t, p.Release(t.Context()))
				granted(t, second, 10*time.Second)
			})
		})
	}
}
