package clienttest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/quorum"
)

// The same of a quorum, each of whose members has a bad network of its own.
func TestCallsOfEveryKindOfAQuorum(t *testing.T) {
	ManySchedules(t, 10, everyCallOfAQuorum)
}

func everyCallOfAQuorum(t *testing.T, rng *rand.Rand) (granted int) {
	members := []*memstore.Store{memstore.New(), memstore.New(), memstore.New()}
	var ways []*BadWay
	var clients []*rowlock.Client
	open := func() *rowlock.Client {
		var far []lease.Store
		for _, m := range members {
			way := NewBadWay(m, rng.Uint64())
			ways, far = append(ways, way), append(far, way)
		}
		q, err := quorum.New(far...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.Close() })
		return Client(t, q, &rowlock.Config{TTL: TTL, Reaper: rowlock.ReaperConfig{Off: true}})
	}
	for range 1 + rng.IntN(3) {
		clients = append(clients, open())
	}
	p := &EveryCall{TB: t, Keys: letters, Hold: 4 * time.Second, Lease: 3 * time.Second}
	closed := CloseSome(clients, rng, 4*time.Minute)
	p.Play(clients, 2+rng.IntN(6), rng, 2*time.Minute)
	for _, way := range ways {
		way.CalmDown()
	}
	failed := closed()
	time.Sleep(20 * time.Second)
	if failed != nil {
		return p.Granted()
	}
	other := open()
	for _, way := range ways {
		way.CalmDown()
	}
	for _, key := range p.Keys {
		Unlock(t, Take(t, other, key))
	}
	return p.Granted()
}
