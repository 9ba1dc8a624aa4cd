package election_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// Candidates of up to three clients on a bad network, which come and go, and some of which are
// preferred. None leads while another does or finishes, unless that one's lease was lost. Terms
// grow. In fair weather one leads soon, and when all have left, nothing is held.
func TestOneLeadsInBadWeather(t *testing.T) {
	clienttest.ManySchedules(t, 3, leadInTurn)
}

func leadInTurn(t *testing.T, rng *rand.Rand) (terms int) {
	store := memstore.New()
	fair, prefers := rng.IntN(2) == 0, rng.IntN(2) == 0
	var ways []*clienttest.BadWay
	var clients []*rowlock.Client
	for range 1 + rng.IntN(3) {
		way := clienttest.NewBadWay(store, rng.Uint64())
		ways = append(ways, way)
		clients = append(clients, clienttest.Client(t, way, &rowlock.Config{
			Fair: fair, TTL: clienttest.TTL, Reaper: rowlock.ReaperConfig{Off: true},
		}))
	}
	b := &boss{T: t}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for n := range 2 + rng.IntN(4) {
		opts := []election.Option{election.OnError(func(error) {}), election.Rest(1 + clienttest.UpTo(rng, 5*time.Second))}
		if prefers {
			opts = append(opts, election.Prefer(rng.IntN(2) == 0))
		}
		if rng.IntN(4) == 0 {
			opts = append(opts, election.With(rowlock.MaxHold(time.Second+clienttest.UpTo(rng, 20*time.Second))))
		}
		mine := rand.New(rand.NewPCG(rng.Uint64(), 1))
		all.Go(func() { b.comeAndGo(ctx, clients[n%len(clients)], mine, opts) })
	}
	time.Sleep(3 * time.Minute)
	for _, way := range ways {
		way.CalmDown()
	}
	before := b.led()
	time.Sleep(clienttest.TTL + 30*time.Second)
	if b.led() == before {
		t.Error("nobody has begun to lead in a minute of fair weather")
	}
	stop()
	all.Wait()
	time.Sleep(20 * time.Second)
	if r := clienttest.Record(t, store, election.Key("boss")); r.Held {
		t.Errorf("the leadership is held by nobody: %+v", r)
	}
	return b.led()
}

// boss is who leads, as the leaders see it.
type boss struct {
	*testing.T
	mu    sync.Mutex
	terms int
	last  lease.Token
	now   map[*rowlock.Lock]bool // of leads that have not returned
}

func (b *boss) led() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.terms
}

// comeAndGo is a candidate for a while, and again.
func (b *boss) comeAndGo(ctx context.Context, c *rowlock.Client, rng *rand.Rand, opts []election.Option) {
	for ctx.Err() == nil {
		stays, leave := context.WithTimeout(ctx, clienttest.UpTo(rng, 2*time.Minute))
		err := election.Run(stays, c, "boss", func(ctx context.Context, l *rowlock.Lock) error {
			b.begins(l)
			defer b.ends(l)
			lasts, over := context.WithTimeout(ctx, clienttest.UpTo(rng, 20*time.Second))
			defer over()
			<-lasts.Done()
			time.Sleep(clienttest.UpTo(rng, 3*time.Second)) // what it finishes
			return []error{nil, errors.New("a lead has failed")}[rng.IntN(2)]
		}, opts...)
		leave()
		if errors.Is(err, rowlock.ErrConfig) || errors.Is(err, rowlock.ErrClosed) {
			b.Error(err)
			return
		}
		time.Sleep(clienttest.UpTo(rng, 10*time.Second))
	}
}

func (b *boss) begins(l *rowlock.Lock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.now {
		cause := context.Cause(other.Context())
		gone := errors.Is(cause, rowlock.ErrLost) || errors.Is(cause, rowlock.ErrMaxHold)
		if !gone && l.Context().Err() == nil {
			b.Errorf("term %d begins in term %d", l.Token(), other.Token())
		}
	}
	//rowlockvet:ignore it looks for a broken promise, and protects nothing
	if l.Token() <= b.last {
		b.Errorf("term %d after %d", l.Token(), b.last)
	}
	if b.now == nil {
		b.now = make(map[*rowlock.Lock]bool)
	}
	b.last, b.now[l] = l.Token(), true
	b.terms++
}

func (b *boss) ends(l *rowlock.Lock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.now, l)
}
