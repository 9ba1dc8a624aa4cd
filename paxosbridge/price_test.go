package paxosbridge_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/counted"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// A key that has moved costs the database nothing more, however many clients want, hold and await
// it.
func TestAKeyInTheClusterCostsTheTableOneReadARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		c := counted.Count(r.table)
		b, err := paxosbridge.New(
			t.Context(), c, r.cluster,
			&paxosbridge.Config{
				Every: time.Second, Heat: paxosbridge.Heat{Hot: 1e9, MinStay: time.Hour}, Refresh: 10 * time.Second,
			},
		)
		r.must(err)
		locks, err := rowlock.New(
			b, &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}, TTL: 3 * time.Second},
		)
		r.must(err)
		r.must(b.MoveOut(t.Context(), "k", "test"))
		c.Reset()
		pairs := 0
		end := time.Now().Add(2 * time.Minute)
		done := make(chan struct{})
		for range 4 {
			go func() {
				defer func() { done <- struct{}{} }()
				for time.Now().Before(end) {
					_ = locks.Do(
						context.Background(), "k",
						func(context.Context, *rowlock.Lock) error {
							// Some leases are renewed meanwhile.
							time.Sleep(time.Duration(pairs%7) * time.Second / 2)
							pairs++
							return nil
						},
					)
				}
			}()
		}
		for range 4 {
			<-done
		}
		if reads, writes := c.Calls(); reads > 13 || writes != 0 {
			t.Errorf(
				"%d pairs in 2 min cost the table %d reads and %d writes, want one read every 10 s",
				pairs, reads, writes,
			)
		}
		r.must(locks.Close())
		r.must(b.Close())
		_ = r.Close()
	})
}

// What a process remembers of a key's placement needs no expiry: the store refuses the request, and
// it follows the key.
func TestARouteThatIsAWeekOldIsRefusedAndFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Refresh: 1000 * time.Hour})
		slow := r.bridge(t, paxosbridge.Config{Refresh: 1000 * time.Hour})
		other := r.bridge(t, paxosbridge.Config{Refresh: 1000 * time.Hour})
		r.must(r.MoveOut(t.Context(), "there", "test"))
		r.free(slow, r.hold(slow, "there", 1))
		r.free(slow, r.hold(slow, "here", 0))
		// As slow would send it.
		late := lease.AcquireRequest{
			Key: "there", Owner: lease.NewOwner(), TTL: time.Minute, Epoch: 1,
		}
		for range 3 {
			r.must(r.MoveBack(t.Context(), "there", "test"))
			r.must(r.MoveOut(t.Context(), "there", "test"))
			r.must(r.MoveOut(t.Context(), "here", "test"))
			r.must(r.MoveBack(t.Context(), "here", "test"))
		}
		r.must(r.MoveOut(t.Context(), "here", "test"))
		r.must(r.MoveBack(t.Context(), "there", "test"))
		time.Sleep(7 * 24 * time.Hour)
		there, here := r.hold(other, "there", 8), r.hold(other, "here", 7)
		if a := r.ask(r.cluster, late); a.Granted || a.Err == nil {
			t.Errorf("the cluster answered %+v to what was sent a week ago", a)
		}
		if a := r.ask(r.cluster, request("there")); a.Granted {
			t.Errorf("the cluster answered %+v for a key that has come back", a)
		}
		for _, key := range []string{"there", "here"} {
			if a := r.ask(slow, request(key)); a.Granted || a.Err != nil ||
				a.Holder.Note != "test" {
				t.Errorf("%q was answered %+v, want its holder", key, a)
			}
		}
		r.free(other, there)
		r.free(other, here)
		r.free(slow, r.hold(slow, "there", 8))
		r.free(slow, r.hold(slow, "here", 7))
		for _, b := range []*paxosbridge.Bridge{r.Bridge, slow, other} {
			_ = b.Close()
		}
	})
}
