package conn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
)

// What is held back for a batch is not overtaken by what comes later: a caller that finds a
// connection idle, because it was held back from those that wait, must not borrow it before them.
func TestWhatIsHeldBackIsNotOvertaken(t *testing.T) {
	for _, callers := range []int{4, 8, 16} {
		for _, conns := range []int{3, 4, 8} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, conns, func(c *conn.Config[body]) { c.Merge, c.Gather = 512, 32 })
				r.before = func() { time.Sleep(250*time.Microsecond + rand.N(500*time.Microsecond)) }
				var mu sync.Mutex
				var waits []time.Duration
				var wg sync.WaitGroup
				end := time.Now().Add(time.Second)
				for i := range callers {
					wg.Go(func() {
						for time.Now().Before(end) {
							for _, k := range []conn.Kind{conn.Acquire, conn.Release} {
								began := time.Now()
								r.do(quick(k, fmt.Sprint(i)))
								mu.Lock()
								waits = append(waits, time.Since(began))
								mu.Unlock()
							}
						}
					})
				}
				wg.Wait()
				slices.Sort(waits)
				p99, worst := waits[len(waits)*99/100], waits[len(waits)-1]
				t.Logf("%d conns, %d callers: %d ops, p99 %v, worst %v", conns, callers, len(waits), p99, worst)
				if worst > 3*time.Millisecond { // two statements take 1.5 ms at most
					t.Errorf("%d conns, %d callers: an op waited for %v", conns, callers, worst)
				}
			})
		}
	}
}
