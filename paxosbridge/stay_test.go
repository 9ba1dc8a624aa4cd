package paxosbridge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// deafTable and deafCluster make the step that cannot be undone, and lose its answer.
type deafTable struct{ table }

func (d deafTable) Depart(ctx context.Context, l lease.Lease, placement int) (int64, bool, error) {
	_, _, _ = d.table.Depart(ctx, l, placement)
	return 0, false, lease.ErrUnknown
}

type deafCluster struct{ *memcluster.Cluster }

func (d deafCluster) Seal(ctx context.Context, l lease.Lease) (bool, error) {
	_, _ = d.Cluster.Seal(ctx, l)
	return false, lease.ErrUnknown
}

func TestAMoveWithAnUnknownOutcomeDoesNotSayThatTheKeyStays(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	stayed := 0
	cfg := paxosbridge.Config{
		Every: -1, Hooks: paxosbridge.Hooks{Stayed: func(string, error) { stayed++ }},
		Logger: slog.New(slog.DiscardHandler),
	}
	b, err := paxosbridge.New(t.Context(), deafTable{r.table}, deafCluster{r.cluster}, &cfg)
	r.must(err)
	defer b.Close()
	for epoch, move := range []func(context.Context, string, string) error{b.MoveOut, b.MoveBack} {
		err := move(t.Context(), "k", "test")
		r.wantIs(err, lease.ErrUnknown)
		if strings.Contains(err.Error(), "stays") || stayed != 0 {
			t.Errorf("it has left, and the error is %v; Stayed was called %d times", err, stayed)
		}
		r.free(b, r.hold(b, "k", int64(epoch+1)))
	}
	r.must(r.MoveOut(t.Context(), "k", "test"))
	if err := b.MoveOut(t.Context(), "k", "test"); err == nil ||
		strings.Contains(err.Error(), "stays in the table") {
		t.Errorf("it is in the cluster, and the error is %v", err)
	}
}

// silentCluster answers no probe.
type silentCluster struct{ *memcluster.Cluster }

func (silentCluster) Probe(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// The deciding loop tries again every second.
func TestAHotKeyCanBeLockedWhileTheClusterHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		b, err := paxosbridge.New(
			t.Context(), r.table, silentCluster{r.cluster}, &paxosbridge.Config{Every: -1},
		)
		r.must(err)
		done := make(chan error, 1)
		go func() { done <- b.MoveOut(context.Background(), "k", "test") }()
		synctest.Wait()
		r.free(b, r.hold(b, "k", 0))
		err = <-done
		if r.wantIs(err, lease.ErrBusy); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller has no deadline: %v", err)
		}
		r.must(b.Close())
		_ = r.Close()
	})
}

// A cancelled move releases its key, which takes time if the database hangs.
func TestCloseBeginsNoMoreMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		var tried atomic.Int64
		cfg := paxosbridge.Config{
			Pin:   func(string) paxosbridge.Pin { return paxosbridge.Always },
			Hooks: paxosbridge.Hooks{Stayed: func(string, error) { tried.Add(1) }},
		}
		b, err := paxosbridge.New(t.Context(), r.table, silentCluster{r.cluster}, &cfg)
		r.must(err)
		for i := range 100 { // so that enough are counted
			for range 10 {
				r.ask(b, request(fmt.Sprint(i)))
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait() // the first move waits for the cluster
		r.must(b.Close())
		if n := tried.Load(); n != 1 {
			t.Errorf("%d moves were given up, want the one that was under way", n)
		}
		_ = r.Close()
	})
}

// A driver panics under a mover, and its caller recovers. Each release of the key went on to be
// handed to that mover.
func TestAPanicLeavesNoMoverPending(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	p := panicking{r.table, new(atomic.Bool)}
	b, err := paxosbridge.New(t.Context(), p, r.cluster, &paxosbridge.Config{Every: -1})
	r.must(err)
	defer b.Close()
	l := r.hold(b, "k", 0)
	p.panics.Store(true)
	func() {
		defer func() { _ = recover() }()
		_ = b.MoveOut(t.Context(), "k", "test")
	}()
	p.panics.Store(false)
	r.free(b, l)
	if row := r.row("k"); row.Held {
		t.Errorf("%q has it, for %v", row.Note, row.Remaining)
	}
	r.must(b.MoveOut(t.Context(), "k", "test"))
}

type panicking struct {
	table
	panics *atomic.Bool
}

func (p panicking) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	if p.panics.Load() {
		panic("a driver's")
	}
	return p.table.Acquire(ctx, reqs)
}

// slowPasser hands over when the test says so, like a database that is overloaded.
type slowPasser struct {
	table
	begun, let chan struct{}
}

func (s slowPasser) HandOver(
	ctx context.Context, items []lease.HandOver,
) ([]lease.Acquired, error) {
	close(s.begun)
	<-s.let
	return s.table.HandOver(ctx, items)
}

// The mover stops waiting while the holder hands the key over to it. No process would release it.
func TestAKeyIsNotLeftToAMoverThatHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		slow := slowPasser{r.table, make(chan struct{}), make(chan struct{})}
		b, err := paxosbridge.New(t.Context(), slow, r.cluster, &paxosbridge.Config{Every: -1})
		r.must(err)
		l := r.hold(b, "k", 0)
		ctx, cancel := context.WithCancel(t.Context())
		moved, freed := make(chan error, 1), make(chan error, 1)
		go func() { moved <- b.MoveOut(ctx, "k", "test") }()
		synctest.Wait()
		go func() {
			_, err := b.Release(context.Background(), []lease.Lease{l})
			freed <- err
		}()
		<-slow.begun
		cancel()
		r.wantIs(<-moved, context.Canceled)
		close(slow.let)
		r.must(<-freed)
		if row := r.row("k"); row.Held {
			t.Errorf("%q has it, for %v", row.Note, row.Remaining)
		}
		r.must(b.Close())
		_ = r.Close()
	})
}

func TestTheLongestMoveTimeoutIsAccepted(t *testing.T) {
	r := newRig(t, paxosbridge.Config{MoveTimeout: math.MaxInt64})
	var held time.Duration
	spy := spyCluster{r.cluster, func() { held = r.row("k").Remaining }}
	b, err := paxosbridge.New(
		t.Context(), r.table, spy, &paxosbridge.Config{Every: -1, MoveTimeout: math.MaxInt64},
	)
	r.must(err)
	defer b.Close()
	r.must(b.MoveOut(t.Context(), "k", "test"))
	if held <= 0 {
		t.Errorf("the mover's lease ends in %v", held)
	}
}

// spyCluster calls a function at each probe.
type spyCluster struct {
	*memcluster.Cluster
	look func()
}

func (s spyCluster) Probe(ctx context.Context) error {
	s.look()
	return s.Cluster.Probe(ctx)
}

// A nil pointer from a constructor has a type.
func TestAStoreThatIsANilPointerIsRefused(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	_, err := paxosbridge.New(t.Context(), r.table, (*memcluster.Cluster)(nil), nil)
	r.wantIs(err, lease.ErrConfig)
	_, err = paxosbridge.New(t.Context(), (*deafTable)(nil), r.cluster, nil)
	r.wantIs(err, lease.ErrConfig)
}

func TestATableWhoseWaitersCannotBeNotifiedIsRefused(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	_, err := paxosbridge.New(t.Context(), struct{ paxosbridge.Table }{r.table}, r.cluster, nil)
	r.wantIs(err, lease.ErrUnsupported)
}

// A poll reads all keys that a process waits for. It found no key of the table free while the
// cluster was down, and none of the cluster while the table was.
func TestKeysAreInspectedWhileTheOtherStoreIsDown(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	blind := false
	b, err := paxosbridge.New(
		t.Context(), blindTable{r.table, &blind}, r.cluster, &paxosbridge.Config{Every: -1},
	)
	r.must(err)
	defer b.Close()
	r.must(b.MoveOut(t.Context(), "there", "test"))
	r.free(b, r.hold(b, "here", 0))
	r.free(b, r.hold(b, "there", 1))
	keys := []string{"here", "there"}
	for down, up := range map[string]string{"there": "here", "here": "there"} {
		r.cluster.Fail(nil)
		if blind = down == "here"; !blind {
			r.cluster.Fail(errDown)
		}
		rows, err := b.Inspect(t.Context(), lease.Filter{Keys: keys})
		if r.wantIs(err, errDown); len(rows) != 1 || rows[0].Key != up || rows[0].Err != nil {
			t.Errorf("%q is up: %+v", up, rows)
		}
		_, err = b.Inspect(t.Context(), lease.Filter{Keys: []string{down}})
		r.wantIs(err, errDown)
	}
	r.cluster.Fail(errDown)
	// This bridge has not heard of the move.
	rows, err := r.Inspect(t.Context(), lease.Filter{Keys: keys})
	if r.wantIs(err, errDown); len(rows) != 1 || rows[0].Key != "here" {
		t.Errorf("%+v", rows)
	}
}

// One poll reads both keys.
func TestAWaiterInTheTableIsServedWhileTheClusterIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		r.must(r.MoveOut(t.Context(), "there", "test"))
		r.hold(r.Bridge, "there", 1)
		l := r.hold(r.Bridge, "here", 0)
		c, err := rowlock.New(r.Bridge, nil)
		r.must(err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		waits := make(chan error, 1)
		go func() { _, err := c.Lock(ctx, "there"); waits <- err }()
		go func() {
			time.Sleep(5 * time.Second)
			r.cluster.Fail(errDown)
			r.free(r.table, l) // as a release whose notification is lost
		}()
		began := time.Now()
		if got, err := c.Lock(ctx, "here"); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		} else {
			r.must(got.Unlock(ctx))
		}
		cancel()
		<-waits
		r.must(c.Close())
		_ = r.Close()
	})
}

func TestKeysAreInspectedWhereTheyAre(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	other := r.bridge(t, paxosbridge.Config{})
	keys := []string{"a", "b", "c", "d"}
	for i, key := range keys {
		if i%2 == 0 {
			r.must(r.MoveOut(t.Context(), key, "test"))
		}
		r.hold(r.Bridge, key, int64(1-i%2))
	}
	for name, b := range map[string]*paxosbridge.Bridge{"the mover's": r.Bridge, "another": other} {
		for limit, want := range []int{4, 1, 2, 3, 4, 4} {
			got, err := b.Inspect(t.Context(), lease.Filter{Keys: keys, Held: true, Limit: limit})
			r.must(err)
			if len(got) != want {
				t.Errorf("%s: %d of %d keys with the limit %d", name, len(got), want, limit)
			}
			for i := range got {
				if got[i].Key != keys[i] || got[i].Placement != 1-i%2 || !got[i].Held {
					t.Errorf("%s: record %d is %+v", name, i, got[i])
				}
			}
		}
	}
}

// busyCluster fails no call, but its items.
type busyCluster struct{ *memcluster.Cluster }

func (busyCluster) Acquire(
	_ context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	out := make([]lease.Acquired, len(reqs))
	for i := range out {
		out[i].Err = lease.ErrBusy
	}
	return out, nil
}

func TestStateHasTheErrorsOfABatch(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	b, err := paxosbridge.New(
		t.Context(), r.table, busyCluster{r.cluster}, &paxosbridge.Config{Every: -1},
	)
	r.must(err)
	defer b.Close()
	for _, key := range []string{"a", "b"} {
		r.must(b.MoveOut(t.Context(), key, "test"))
	}
	_, err = b.Acquire(t.Context(), []lease.AcquireRequest{request("a"), request("b")})
	r.must(err)
	for _, s := range b.State() {
		r.wantIs(s.Err, lease.ErrBusy)
	}
}

// Heat.Most bounds memory, and allocates none in advance.
func TestCountersAllocateNothingInAdvance(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	newRig(t, paxosbridge.Config{Heat: paxosbridge.Heat{Most: 1 << 20}})
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 4 {
		t.Errorf("%d MB for no key at all", mb)
	}
}

// A call chain finds what it holds through any bridge, and through the table beneath.
func TestBridgesOverOneTableHaveItsKeys(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	other := newRig(t, paxosbridge.Config{})
	tables := adapter.TablesOf(r.Bridge)
	if tables != adapter.TablesOf(r.table) || tables != adapter.TablesOf(r.bridge(t, paxosbridge.Config{})) {
		t.Error("a bridge has other tables than its table, or than another bridge over it")
	}
	if tables == adapter.TablesOf(other.Bridge) || tables == adapter.TablesOf(other.table) {
		t.Error("two tables are one")
	}
}

func TestAListingSaysWhereAKeyIs(t *testing.T) {
	r := newRig(t, paxosbridge.Config{Delegation: delegation})
	for _, key := range []string{"away", "forced", "home", "idle", "swept"} {
		r.must(r.MoveOut(t.Context(), key, "test"))
	}
	r.hold(r.Bridge, "away", 1)
	r.must(r.MoveBack(t.Context(), "home", "test"))
	r.must(r.MoveBack(t.Context(), "swept", "test"))
	if n, err := r.Sweep(t.Context(), lease.SweepOptions{}); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	r.ask(r.Bridge, request("home"))
	r.hold(r.Bridge, "forced", 1)
	if _, err := r.table.Recall(t.Context(), "forced", 32767, 3); err != nil {
		t.Fatal(err)
	}
	var got []string
	f := lease.Filter{Limit: 2}
	for page := 2; page == 2; {
		rows, err := r.Inspect(t.Context(), f)
		r.must(err)
		for _, row := range rows {
			got = append(got, fmt.Sprint(row.Key, " ", row.Placement, " ", row.Held))
			f.After = row.Key
		}
		page = len(rows)
	}
	want := []string{"away 1 true", "forced 32767 false", "home 0 true", "idle 1 false", "swept 0 false"}
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}
