package clienttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// Callers of up to three clients that hold one key and ask for others, in any order, so that they
// wait for each other all the time: each cycle is broken soon, and no call is ended that is in
// none. Calls that share a key, and fair clients, wait for more than holders: of them only the
// first is asked.
func TestNestedCallsInAnyOrder(t *testing.T) {
	for _, c := range []struct{ fair, share bool }{{}, {fair: true}, {share: true}, {true, true}} {
		t.Run(fmt.Sprintf("fair %t, share %t", c.fair, c.share), func(t *testing.T) {
			ManySchedules(t, 10, func(t *testing.T, rng *rand.Rand) int {
				n := &Nest{T: t, Keys: letters, Strict: !c.fair && !c.share, Share: c.share, Pause: time.Second}
				store := memstore.New()
				var clients []*rowlock.Client
				for range 1 + rng.IntN(3) {
					clients = append(clients, Client(t, store, &rowlock.Config{
						Fair: c.fair, TTL: TTL, Reaper: rowlock.ReaperConfig{Off: true},
						Hints: []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff}[rng.IntN(2)],
					}))
				}
				return n.Play(clients, rng, 8)
			})
		})
	}
}

// A reader of several keys that is behind a writer of its own client, and for whom a member of the
// group waits, is let in when the writer's intent lets readers in.
func TestAReaderOfSeveralKeysAsksBehindAWriterOfItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c, other := Client(t, s, nil), Client(t, s, nil)
		member, err := other.RLock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		held := Take(t, c, "c")
		writer := WaitIn(t, t.Context(), c, "a")
		waits := WaitIn(t, member.Context(), other, "c")
		ctx, cancel := context.WithTimeout(held.Context(), lease.IntentRefuses+2*lease.IntentAdmits)
		defer cancel()
		both, err := c.RLockAll(ctx, []string{"a", "b"})
		if err != nil {
			t.Fatalf("the reader: %v", err)
		}
		ok := []error{both.Unlock(t.Context()), held.Unlock(t.Context())}
		got := <-waits
		ok = append(ok, got.Err, got.Lock.Unlock(t.Context()), member.Unlock(t.Context()))
		got = <-writer
		if err := errors.Join(append(ok, got.Err, got.Lock.Unlock(t.Context()))...); err != nil {
			t.Error(err)
		}
	})
}

// Writers that began to wait at different times keep a reader from two keys, and a member of each
// group waits for what the reader's ctx holds. No ErrDeadlock tells of that: both writers let the
// reader in at one time.
func TestAReaderOfSeveralKeysGetsPastWritersThatCameAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c, other := Client(t, s, nil), Client(t, s, nil)
		held := Take(t, c, "c")
		var members []*rowlock.Lock
		var writers, waits []<-chan Waited
		for _, key := range []string{"a", "b"} {
			member, err := other.RLock(t.Context(), key) //rowlockvet:ignore each is a caller of its own
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, member)
			writers = append(writers, WaitIn(t, t.Context(), other, key))
			waits = append(waits, WaitIn(t, member.Context(), other, "c"))
			time.Sleep(lease.IntentRefuses / 2)
		}
		ctx, cancel := context.WithTimeout(held.Context(), 2*(lease.IntentRefuses+lease.IntentAdmits))
		defer cancel()
		both, err := c.RLockAll(ctx, []string{"a", "b"})
		if err != nil {
			t.Errorf("the reader: %v", err)
		} else {
			UnlockAll(t, both)
		}
		Unlock(t, held)
		for i, next := range append(waits, writers...) { // in the order in which they came
			got := <-next
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			Unlock(t, got.Lock)
			if i < len(members) {
				Unlock(t, members[i])
			}
		}
	})
}
