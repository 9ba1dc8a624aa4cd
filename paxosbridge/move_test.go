package paxosbridge_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

func TestAKeyMovesOutAndBackAndItsTokensGrow(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	var last lease.Token
	for epoch := int64(0); epoch < 10; epoch += 2 {
		for range 3 {
			l := r.hold(r.Bridge, "k", epoch)
			if l.Token <= last {
				t.Errorf("token %d after %d", l.Token, last)
			}
			last = l.Token
			r.free(r.Bridge, l)
		}
		r.must(r.MoveOut(t.Context(), "k", "test"))
		r.wantAt("k", 1, epoch+1)
		l := r.hold(r.Bridge, "k", epoch+1)
		if l.Token <= last {
			t.Errorf("token %d after %d", l.Token, last)
		}
		r.free(r.Bridge, l)
		r.must(r.MoveBack(t.Context(), "k", "test"))
		r.wantAt("k", 0, epoch+2)
		last = r.row("k").Token
	}
}

// A holder keeps its lease: the mover waits, and the holder hands the key to it.
func TestAMoveWaitsForTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		for _, step := range []struct {
			move  func(context.Context, string, string) error
			epoch int64
		}{{r.MoveOut, 0}, {r.MoveBack, 1}} {
			l := r.hold(r.Bridge, "k", step.epoch)
			done := make(chan error, 1)
			go func() { done <- step.move(t.Context(), "k", "test") }()
			for range 20 {
				r.renewed(r.Bridge, l, lease.Extended)
				time.Sleep(100 * time.Millisecond) // in which the mover polls more than once
			}
			select {
			case err := <-done:
				t.Fatalf("moved while it was held: %v", err)
			default:
			}
			r.free(r.Bridge, l)
			r.must(<-done)
			r.free(r.Bridge, r.hold(r.Bridge, "k", step.epoch+1))
		}
		_ = r.Close()
	})
}

// A hot key is handed from one waiter to the next and is never free.
func TestAMoverGoesBeforeAHandOver(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	l := r.hold(r.Bridge, "k", 0)
	done := make(chan error, 1)
	go func() { done <- r.MoveOut(t.Context(), "k", "test") }()
	for {
		to := request("k")
		answers, err := r.HandOver(t.Context(), []lease.HandOver{{From: l, To: to}})
		r.must(err)
		if errors.Is(answers[0].Err, lease.ErrMoved) {
			break
		}
		if !answers[0].Granted {
			t.Fatalf("answered %+v", answers[0])
		}
		l = lease.Lease{Key: "k", Owner: to.Owner, Token: answers[0].Token}
	}
	r.must(<-done)
	r.wantAt("k", 1, 1)
}

func TestAClientThatKnowsNothingFollowsAKey(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	other := r.bridge(t, paxosbridge.Config{})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	r.free(other, r.hold(other, "k", 1))
	r.must(r.MoveBack(t.Context(), "k", "test"))
	r.free(other, r.hold(other, "k", 2)) // its route still leads to the cluster
	r.must(r.MoveOut(t.Context(), "k", "test"))
	r.must(r.MoveBack(t.Context(), "k", "test"))
	r.must(r.MoveOut(t.Context(), "k", "test"))
	l := r.hold(other, "k", 5)
	r.renewed(r.Bridge, l, lease.Extended)
	r.free(other, l)
}

// A mover may die between any two steps.
func TestAnyProcessFinishesAHalfDoneMove(t *testing.T) {
	t.Run("departed, not open", func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		l := r.hold(r.table, "k", 0)
		if _, ok, err := r.table.Depart(t.Context(), l, 1); !ok || err != nil {
			t.Fatal(ok, err)
		}
		r.free(r.Bridge, r.hold(r.Bridge, "k", 1))
	})
	t.Run("sealed, not returned", func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		if ok, err := r.cluster.Seal(t.Context(), r.hold(r.Bridge, "k", 1)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		r.free(r.Bridge, r.hold(r.Bridge, "k", 2))
	})
	t.Run("by an audit", func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		if ok, err := r.cluster.Seal(t.Context(), r.hold(r.Bridge, "k", 1)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		r.must(r.bridge(t, paxosbridge.Config{}).Audit(t.Context()))
		if row := r.row("k"); row.Placement != lease.PlacementTable || lease.Epoch(row.Token) != 2 {
			t.Errorf("the row is %+v", row)
		}
	})
}

var errDown = errors.New("down")

// A move checks that the cluster answers before the step that cannot be undone.
func TestAKeyStaysWhenTheClusterIsDown(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	r.cluster.Fail(errDown)
	r.wantIs(r.MoveOut(t.Context(), "k", "test"), errDown)
	r.wantAt("k", 0, 0)
}

func TestAKeyInAClusterThatIsDownFailsInsteadOfFallingBack(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	r.cluster.Fail(errDown)
	answers, err := r.Acquire(
		t.Context(), []lease.AcquireRequest{request("k"), request("in the table")},
	)
	r.must(err)
	r.wantIs(answers[0].Err, errDown)
	if !answers[1].Granted {
		t.Errorf("a key in the table was answered %+v", answers[1])
	}
	state := r.State()
	if len(state) != 1 || !errors.Is(state[0].Err, errDown) {
		t.Errorf("the state is %+v", state)
	}
	r.cluster.Fail(nil)
	r.wantAt("k", 1, 1)
	if state := r.State(); state[0].Err != nil {
		t.Errorf("the state is %+v when the cluster is back", state)
	}
}

// A move that a database forgot in a failover is recalled before the key is granted in both stores.
func TestAForgottenMoveIsRecalled(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	l := r.hold(r.Bridge, "k", 1)
	forgetful := table{r.table.Store}
	forgetful.Forget("k")
	var recalled []string
	b := r.bridge(
		t,
		paxosbridge.Config{
			Hooks: paxosbridge.Hooks{
				Recalled: func(key string, _ int64) { recalled = append(recalled, key) },
			},
		},
	)
	if row := r.row("k"); row.Placement != 1 || lease.Epoch(row.Token) != 1 {
		t.Errorf("the row is %+v after the first audit", row)
	}
	if len(recalled) != 1 {
		t.Errorf("recalled %q", recalled)
	}
	if a := r.ask(b, request("k")); a.Granted {
		t.Errorf("granted %+v to a second", a)
	}
	r.renewed(b, l, lease.Extended)
}

// stubborn is a table in which one key cannot be recalled.
type stubborn struct {
	table
	key string
}

func (s stubborn) Recall(ctx context.Context, key string, placement int, epoch int64) (bool, error) {
	if key == s.key {
		return false, errDown
	}
	return s.table.Recall(ctx, key, placement, epoch)
}

func TestAKeyThatCannotBeRepairedDoesNotStopTheAudit(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	b, err := paxosbridge.New(
		t.Context(), stubborn{r.table, "b"}, r.cluster, &paxosbridge.Config{Every: -1},
	)
	r.must(err)
	defer b.Close()
	for _, key := range []string{"a", "b", "c"} {
		r.must(r.MoveOut(t.Context(), key, "test"))
		r.table.Forget(key)
	}
	if err := b.Audit(t.Context()); !errors.Is(err, errDown) ||
		!strings.Contains(err.Error(), `"b"`) {
		t.Errorf("got %v, want %v of b", err, errDown)
	}
	for key, placement := range map[string]int{"a": 1, "b": 0, "c": 1} {
		if row := r.row(key); row.Placement != placement {
			t.Errorf("the row of %q is %+v, want it at placement %d", key, row, placement)
		}
	}
}

// oneBad is a cluster in which the record of one key cannot be read.
type oneBad struct {
	paxosbridge.Cluster
	key string
}

func (c oneBad) Records(ctx context.Context, after string, limit int) ([]paxosbridge.Record, error) {
	all, err := c.Cluster.Records(ctx, after, limit)
	for i, r := range all {
		if r.Key == c.key {
			all[i] = paxosbridge.Record{Key: r.Key, Err: lease.ErrCorrupt}
		}
	}
	return all, err
}

func TestABadRecordDoesNotStopTheAudit(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	b, err := paxosbridge.New(t.Context(), r.table, oneBad{r.cluster, "b"}, &paxosbridge.Config{Every: -1})
	r.must(err)
	defer b.Close()
	for _, key := range []string{"a", "b", "c"} {
		r.must(r.MoveOut(t.Context(), key, "test"))
		r.table.Forget(key)
	}
	if err := b.Audit(t.Context()); !errors.Is(err, lease.ErrCorrupt) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("got %v, want %v of b", err, lease.ErrCorrupt)
	}
	for key, placement := range map[string]int{"a": 1, "b": 0, "c": 1} {
		if row := r.row(key); row.Placement != placement {
			t.Errorf("the row of %q is %+v, want it at placement %d", key, row, placement)
		}
	}
}

// A row that has come back is swept like any other. Its record stays, and its tokens go on above
// the old ones.
func TestASweptRowOfAKeyThatCameBackIsNoForgottenMove(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	r.must(r.MoveBack(t.Context(), "k", "test"))
	l := r.hold(r.Bridge, "k", 2)
	r.free(r.Bridge, l)
	if n, err := r.Sweep(t.Context(), lease.SweepOptions{Batch: 10}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r.must(r.Audit(t.Context()))
	if next := r.hold(r.Bridge, "k", 2); next.Token <= l.Token {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
}

func TestTheSweeperKeepsMovedRows(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	if n, err := r.Sweep(t.Context(), lease.SweepOptions{Batch: 10}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	r.wantAt("k", 1, 1)
}

func TestAMovedKeyIsFencedByItsToken(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	old := r.hold(r.Bridge, "k", 0)
	r.free(r.Bridge, old)
	r.must(r.MoveOut(t.Context(), "k", "test"))
	first := r.hold(r.Bridge, "k", 1)
	r.wantIs(r.Fence(t.Context(), nil, first), nil)
	r.wantIs(r.Fence(t.Context(), nil, first), nil)
	r.wantIs(r.Fence(t.Context(), nil, old), lease.ErrFenced)
	r.cluster.Expire("k")
	second := r.hold(r.Bridge, "k", 1)
	r.wantIs(r.Fence(t.Context(), nil, second), nil)
	r.wantIs(r.Fence(t.Context(), nil, first), lease.ErrFenced)
	r.wantIs(r.ReleaseTx(t.Context(), nil, second), lease.ErrUnsupported)
	r.free(r.Bridge, second)
	r.must(r.MoveBack(t.Context(), "k", "test"))
	r.wantIs(r.Fence(t.Context(), nil, second), lease.ErrFenced)
	r.wantIs(r.Fence(t.Context(), nil, r.hold(r.Bridge, "k", 2)), nil)
}

// away moves every key out before the first request for it, by either process. It can only do what
// a cluster can.
type away struct {
	*locker
	mover *paxosbridge.Bridge
	moved *moved
}

// moved are the keys that were moved out. A request during a move of the key would see the mover as
// its holder.
type moved struct {
	sync.Mutex
	keys map[string]bool
}

type locker struct {
	lease.Store
	lease.Passer
	lease.Notifier
	lease.Registry
	lease.Roamer
}

func (a away) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	for _, q := range reqs {
		if lease.CheckKey(q.Key) == nil {
			a.moveOut(ctx, q.Key)
		}
	}
	return a.mover.Acquire(ctx, reqs)
}

func (a away) moveOut(ctx context.Context, key string) {
	a.moved.Lock()
	defer a.moved.Unlock()
	if !a.moved.keys[key] {
		a.moved.keys[key] = a.mover.MoveOut(ctx, key, "test") == nil
	}
}

func TestConformance(t *testing.T) {
	var stores map[lease.Store]*rig
	for name, wrap := range map[string]func(*rig, *paxosbridge.Bridge) lease.Store{
		"in the table": func(_ *rig, b *paxosbridge.Bridge) lease.Store { return b },
		"in the cluster": func(r *rig, b *paxosbridge.Bridge) lease.Store {
			return away{&locker{b, b, b, b, b}, b, &r.moved}
		},
	} {
		t.Run(name, func(t *testing.T) {
			stores = make(map[lease.Store]*rig)
			locktest.Run(t, locktest.Harness{
				Open: func(tb testing.TB) lease.Store {
					r := newRig(tb, paxosbridge.Config{})
					r.moved.keys = make(map[string]bool)
					s := wrap(r, r.Bridge)
					stores[s] = r
					return s
				},
				Another: func(tb testing.TB, s lease.Store) lease.Store {
					another := wrap(stores[s], stores[s].bridge(tb, paxosbridge.Config{}))
					stores[another] = stores[s]
					return another
				},
				Expire: func(_ testing.TB, s lease.Store, key string) {
					stores[s].table.Expire(key)
					stores[s].cluster.Expire(key)
				},
			})
		})
	}
}

// The application's code does not change: a rowlock.Client over a bridge, while its key moves.
func TestWaitersOfAClientFollowAKey(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	c, err := rowlock.New(r.Bridge, nil)
	r.must(err)
	defer c.Close()
	sum, stop := 0, make(chan struct{})
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				err := c.Do(
					context.Background(), "k",
					func(context.Context, *rowlock.Lock) error { sum++; return nil },
				)
				if err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range 20 {
		r.must(r.MoveOut(t.Context(), "k", "test"))
		r.must(r.MoveBack(t.Context(), "k", "test"))
	}
	close(stop)
	for range cap(done) {
		r.must(<-done)
	}
	t.Logf("%d pairs during 40 moves", sum)
	if epoch := lease.Epoch(r.row("k").Token); epoch != 40 {
		t.Errorf("epoch %d after 40 moves", epoch)
	}
}

// clocked has a clock that is not the table's.
type clocked struct{ *memcluster.Cluster }

func (c clocked) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	answers, err := c.Cluster.Renew(ctx, reqs)
	for i := range answers {
		answers[i].Clock = time.Hour
	}
	return answers, err
}

// The watchdog would take the difference of two clocks for a clock that runs ahead.
func TestOnlyTheTablesClockIsReported(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	b, err := paxosbridge.New(
		t.Context(), r.table, clocked{r.cluster}, &paxosbridge.Config{Every: -1},
	)
	r.must(err)
	defer b.Close()
	r.must(b.MoveOut(t.Context(), "k", "test"))
	l := r.hold(b, "k", 1)
	answers, err := b.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: time.Minute}})
	r.must(err)
	if answers[0].Outcome != lease.Extended || answers[0].Clock != 0 {
		t.Errorf("answered %+v", answers[0])
	}
}

// searching looks for waiters at each release.
type searching struct{ *memcluster.Cluster }

func (c searching) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	answers, err := c.Cluster.Release(ctx, leases)
	for i := range answers {
		answers[i].Looked = true
	}
	return answers, err
}

// A cluster that looks for waiters finds none, because they do not register.
func TestNoReleaseInTheClusterTellsOfWaiters(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	b, err := paxosbridge.New(
		t.Context(), r.table, searching{r.cluster}, &paxosbridge.Config{Every: -1},
	)
	r.must(err)
	defer b.Close()
	r.must(b.MoveOut(t.Context(), "k", "test"))
	answers, err := b.Release(t.Context(), []lease.Lease{r.hold(b, "k", 1)})
	r.must(err)
	if answers[0] != (lease.Released{}) {
		t.Errorf("answered %+v", answers[0])
	}
}

// The row of a key in the cluster is lost, and its bucket's floor is above the epoch. The table's
// next token is above it too.
func TestALostRowBelowItsFloorIsSuperseded(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	l := r.hold(r.Bridge, "k", 1)
	r.table.Forget("k")
	r.table.RaiseFloor("k", 4<<lease.EpochShift)
	r.must(r.Audit(t.Context()))
	r.renewed(r.Bridge, l, lease.Lost)
	next := r.hold(r.bridge(t, paxosbridge.Config{}), "k", 4)
	if next.Token <= l.Token {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
}

// Another process moves the key while a mover waits at the table. A release in the cluster then is
// not for that mover.
func TestAMoverGetsOnlyTheLeaseItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		other := r.bridge(t, paxosbridge.Config{})
		l := r.hold(other, "k", 0)
		done := make(chan error, 1)
		go func() { done <- r.MoveOut(context.Background(), "k", "test") }()
		synctest.Wait() // until it polls again
		r.free(other, l)
		r.must(other.MoveOut(t.Context(), "k", "test"))
		r.free(r.Bridge, r.hold(r.Bridge, "k", 1))
		r.free(other, r.hold(other, "k", 1))
		r.wantIs(<-done, lease.ErrMoved)
		r.free(r.Bridge, r.hold(r.Bridge, "k", 1))
		_ = r.Close()
		_ = other.Close()
	})
}
