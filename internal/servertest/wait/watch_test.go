package wait

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A watch tells what other processes do with keys: more of them than one page lists, one that is
// released, and one whose holder has died.
func TestAWatchTellsWhatOtherProcessesDo(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		quick := func(cfg *rowlock.Config) { cfg.WatchEvery = 20 * time.Millisecond }
		c, other := s.Client(quick), s.Client()
		var keys []string
		for i := range 1200 {
			keys = append(keys, fmt.Sprintf("watched/%04d", i))
		}
		var taken []*rowlock.Locks
		for part := range slices.Chunk(keys, 500) {
			l, err := other.LockAll(s.Context(), part)
			s.OK(err)
			taken = append(taken, l)
		}
		s.Take(other, "another")
		events := make(chan rowlock.Event, 5000)
		ctx, cancel := context.WithCancel(s.Context())
		over := servertest.Aside(func() error {
			for e, err := range c.Watch(ctx, "watched/") {
				if err != nil {
					return err
				}
				events <- e
			}
			return nil
		})
		want := func(kind rowlock.EventKind, keys []string) {
			s.Helper()
			left := make(map[string]bool, len(keys))
			for _, key := range keys {
				left[key] = true
			}
			for len(left) > 0 {
				e := servertest.Await(s, servertest.Patience, events, kind.String())
				if !left[e.Key] || e.Kind != kind || e.Token == 0 {
					s.Fatalf("%+v, want each of %d keys %s once", e, len(left), kind)
				}
				delete(left, e.Key)
			}
		}
		want(rowlock.EventGranted, keys)
		s.OK(taken[0].Unlock(s.Context()))
		want(rowlock.EventReleased, keys[:500])
		s.Env.Expire(s, "watched/0700")
		want(rowlock.EventExpired, keys[700:701])
		again := s.Take(c, "watched/0003")
		want(rowlock.EventGranted, keys[3:4])
		s.OK(again.Unlock(s.Context()))
		want(rowlock.EventReleased, keys[3:4])
		cancel()
		s.OK(servertest.Await(s, servertest.Patience, over, "the watch to end"))
		for _, l := range taken[1:] {
			_ = l.Unlock(s.Context())
		}
	})
}
