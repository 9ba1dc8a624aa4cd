package wait

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Processes that wait for the same keys poll them together: as many as wait, the keys cost a server
// about what one process costs it. What each still sends is its registration, and on MySQL the
// statement by which it listens.
func TestTwentyProcessesThatWaitForTwoKeysCostFewStatements(t *testing.T) {
	const processes, period, most = 20, 10 * time.Second, 16
	keys := []string{"one", "two"}
	servertest.EachServer(t, func(s *servertest.Scene) {
		sent := faultdb.NewCounter(faultdb.Always(faultdb.None))
		db, err := faultdb.Open(s.Env.Driver, s.Env.Source, faultdb.OnFunc(faultdb.Op.Executes, sent))
		s.OK(err)
		s.Cleanup(func() { s.OK(db.Close()) })
		holder := s.Client()
		for _, key := range keys {
			s.Take(holder, key, rowlock.TTL(servertest.LongTTL), rowlock.NoRenew())
			aged(s, key) // the pauses grow with a hold
		}
		ctx, cancel := context.WithCancel(s.Context())
		var all sync.WaitGroup
		for range processes {
			c := s.ClientOn(db)
			for _, key := range keys {
				all.Go(func() { _, _ = c.Lock(ctx, key) })
			}
		}
		defer all.Wait()
		defer cancel()
		s.Eventually("every registration", func() bool {
			return s.Number(`SELECT count(*) FROM {rowlock_queue}`) == int64(processes*len(keys))
		})
		// A process that was early has counted few others, and believes that for as long as a
		// registration lasts.
		s.Elapse(11 * time.Second)
		// So does one that was late with its own registration, in some of the periods.
		for periods := 1; ; periods++ {
			before, began := sent.Ops(), time.Now()
			s.Elapse(period)
			made, elapsed := sent.Ops()-before, time.Since(began)
			s.Logf("%.1f statements a second", float64(made)/elapsed.Seconds())
			if made < processes/4 {
				s.Errorf("%d statements in %s: nothing polls, or nothing counts", made, elapsed)
			}
			limit := most * elapsed.Seconds()
			if float64(made) <= limit {
				return
			}
			if periods == 3 {
				s.Fatalf("%d statements in %s, want at most %.0f, and so in each of %d periods", made,
					elapsed, limit, periods)
			}
		}
	})
}
