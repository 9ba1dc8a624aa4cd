package clienttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock"
)

// Whichever of both ends it: the other one finds it over, contexts and all.
func TestAnUnlockThatRacesWithCloseReturnsAfterTheContextHasEnded(t *testing.T) {
	for range 30 {
		cfg := &rowlock.Config{}
		cfg.Reaper.Off = true
		c := Client(t, NewScript(), cfg)
		var locks []*rowlock.Lock
		for i := range 300 {
			locks = append(locks, Take(t, c, fmt.Sprint(i)))
		}
		var all sync.WaitGroup
		all.Go(func() { _ = c.Close() })
		for _, l := range locks {
			_ = l.Unlock(context.Background())
			if l.Context().Err() == nil {
				t.Fatal("the context of a lock that was unlocked lives")
			}
		}
		all.Wait()
	}
}
