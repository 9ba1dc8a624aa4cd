package paxosbridge_test

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

const delegation = 4 * time.Minute

func TestForceReturnNeedsDelegation(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	r.wantIs(r.ForceReturn(t.Context(), "k"), lease.ErrConfig)
	r.wantAt("k", 1, 1)
}

func TestACallWithoutAContextIsRefused(t *testing.T) {
	r := newRig(t, paxosbridge.Config{Delegation: delegation})
	var none context.Context
	r.must(r.MoveOut(t.Context(), "k", "test"))
	r.wantIs(r.MoveOut(none, "other", "test"), lease.ErrConfig)
	r.wantIs(r.MoveBack(none, "k", "test"), lease.ErrConfig)
	r.wantIs(r.ForceReturn(none, "k"), lease.ErrConfig)
	r.wantIs(r.Audit(none), lease.ErrConfig)
	_, err := paxosbridge.New(none, r.table, r.cluster, nil)
	r.wantIs(err, lease.ErrConfig)
	r.wantAt("k", 1, 1)
}

// The cluster is lost for good. The table grants the key when no process can believe any more that
// it holds the key in the cluster.
func TestForceReturnWaitsUntilTheClusterHasNoHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation})
		other := r.bridge(t, paxosbridge.Config{Delegation: delegation})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		l := r.hold(other, "k", 1)
		began := time.Now()
		done := make(chan error, 1)
		go func() { done <- r.ForceReturn(context.Background(), "k") }()
		synctest.Wait()
		if a := r.ask(r.Bridge, request("k")); a.Granted || a.Holder.Remaining <= 0 {
			t.Errorf("answered %+v while it is taken back", a)
		}
		var lost time.Duration
		for lost == 0 { // the holder goes on renewing; it still reaches the cluster
			answers, err := other.Renew(
				t.Context(), []lease.RenewRequest{{Lease: l, TTL: time.Minute}},
			)
			if err != nil || answers[0].Outcome == lease.Lost {
				lost = time.Since(began)
			}
			time.Sleep(20 * time.Second)
		}
		r.must(<-done)
		took := time.Since(began)
		if lost+time.Minute > took || took > 2*delegation {
			t.Errorf(
				"the holder was last renewed until %v, and the key came back after %v",
				lost+time.Minute, took,
			)
		}
		r.wantAt("k", 0, 4)
		r.wantIs(r.Fence(t.Context(), nil, l), lease.ErrFenced)
		if a := r.ask(other, request("k")); !a.Granted || lease.Epoch(a.Token) != 4 {
			t.Errorf("another process was answered %+v", a)
		}
		_ = r.Close()
		_ = other.Close()
	})
}

// While the database does not answer, a lease of the cluster is not renewed beyond the last read of
// the row.
func TestALeaseIsNotRenewedBeyondItsDelegation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation, Refresh: delegation / 2})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		l := r.hold(r.Bridge, "k", 1)
		// ForceReturn in another process.
		if _, err := r.table.Recall(t.Context(), "k", 32767, 3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(delegation - 50*time.Second)
		r.renewed(r.Bridge, l, lease.Lost)
		_ = r.Close()
	})
}

// Callers of one process hand a key on to each other, and none of them holds it for long enough to
// renew. Their chain must not outlast what this process has read of the row.
func TestAKeyIsNotHandedOverBeyondItsDelegation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation, Refresh: delegation / 2})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		l := r.hold(r.Bridge, "k", 1)
		began := time.Now()
		go func() { _ = r.ForceReturn(context.Background(), "k") }() // as of another process
		for {
			time.Sleep(20 * time.Second)
			to := request("k")
			answers, err := r.HandOver(t.Context(), []lease.HandOver{{From: l, To: to}})
			r.must(err)
			if a := answers[0]; a.Err != nil {
				t.Fatal(a.Err)
			} else if !a.Granted {
				break // its holder releases it, and the next asks where it is
			}
			l = lease.Lease{Key: "k", Owner: to.Owner, Token: answers[0].Token}
			if row := r.row("k"); row.Placement == lease.PlacementTable {
				t.Fatalf("after %v both stores may grant the key: %+v", time.Since(began), row)
			}
		}
		to := request("k")
		to.TTL = delegation + 1
		r.must(r.MoveOut(t.Context(), "other", "test"))
		l = r.hold(r.Bridge, "other", 1)
		answers, err := r.HandOver(t.Context(), []lease.HandOver{{From: l, To: lease.AcquireRequest{
			Key: "other", Owner: to.Owner, TTL: delegation + 1,
		}}})
		if r.must(err); answers[0].Granted {
			t.Error("handed over for longer than Delegation")
		}
		time.Sleep(2 * delegation)
		_ = r.Close()
	})
}

func TestATTLBeyondDelegationIsRefused(t *testing.T) {
	r := newRig(t, paxosbridge.Config{Delegation: delegation})
	r.must(r.MoveOut(t.Context(), "k", "test"))
	q := request("k")
	q.TTL = delegation + time.Second
	answers, err := r.Acquire(t.Context(), []lease.AcquireRequest{q})
	if err == nil {
		err = answers[0].Err
	}
	r.wantIs(err, lease.ErrConfig)
}

// When a lost cluster comes back, its records are older than the rows.
func TestARecordOfAKeyThatWasTakenBackIsSuperseded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		l := r.hold(r.Bridge, "k", 1)
		r.cluster.Fail(errDown)
		r.must(r.ForceReturn(t.Context(), "k"))
		here := r.hold(r.Bridge, "k", 4)
		r.cluster.Fail(nil)
		r.must(r.Audit(t.Context()))
		if got := r.record("k"); !got.Sealed || got.Epoch != 2 {
			t.Errorf("the record is %+v", got)
		}
		r.renewed(r.Bridge, l, lease.Lost)
		r.renewed(r.Bridge, here, lease.Extended)
		r.free(r.Bridge, here)
		r.must(r.MoveOut(t.Context(), "k", "test"))
		r.wantAt("k", 1, 5)
		_ = r.Close()
	})
}

// The process that forces a return may die while it waits.
func TestAnyProcessFinishesAForcedReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.wantIs(r.ForceReturn(ctx, "k"), context.DeadlineExceeded)
		time.Sleep(2 * delegation)
		r.must(r.Audit(t.Context()))
		r.wantAt("k", 0, 4)
		_ = r.Close()
	})
}

// unseen is a table of which reads show the rows of before, as while the commit of a later
// statement waits for a standby.
type unseen struct {
	table
	rows atomic.Pointer[[]lease.Record]
}

func (u *unseen) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if old := u.rows.Load(); old != nil {
		return slices.Clone(*old), nil
	}
	return u.table.Inspect(ctx, f)
}

// The database's clock stands in the row from when the return ran. Until it can be seen, holders go
// on renewing.
func TestTheWaitOfAForcedReturnBeginsWhenItIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		u := &unseen{table: r.table}
		b, err := paxosbridge.New(t.Context(), u, r.cluster,
			&paxosbridge.Config{Every: -1, Delegation: delegation, Logger: slog.New(slog.DiscardHandler)})
		r.must(err)
		r.must(b.MoveOut(t.Context(), "k", "test"))
		l := r.hold(b, "k", 1)
		old := []lease.Record{r.row("k")}
		// ForceReturn in another process. A failover forgets it, and its next commit is late.
		if _, err := r.table.Recall(t.Context(), "k", 32767, 3); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		q := request("k")
		q.TTL = delegation // so that the row is read
		if a := r.ask(b, q); a.Holder.Note != "taken back by force" {
			t.Errorf("answered %+v", a)
		}
		u.rows.Store(&old)
		if a := r.ask(b, request("k")); a.Holder.Note != "test" {
			t.Errorf("answered %+v, want that the cluster has it", a)
		}
		for range 20 {
			time.Sleep(delegation / 8)
			r.renewed(b, l, lease.Extended)
		}
		u.rows.Store(nil)
		began := time.Now()
		r.must(b.ForceReturn(t.Context(), "k"))
		if took := time.Since(began); took < delegation || took > 2*delegation {
			t.Errorf("back in the table %v after the return was seen", took)
		}
		// The wait of one return does not count for the next.
		if _, err := r.table.Recall(t.Context(), "k", 32767, 5); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		r.must(b.ForceReturn(t.Context(), "k"))
		if took := time.Since(began); took < delegation {
			t.Errorf("back in the table %v after the next return", took)
		}
		r.must(b.Close())
		_ = r.Close()
	})
}

// movedMeanwhile is a table in which a key comes home just before a recall, and is locked there.
type movedMeanwhile struct {
	table
	move func()
}

func (m *movedMeanwhile) Recall(ctx context.Context, key string, placement int, epoch int64) (bool, error) {
	if m.move != nil {
		m.move()
		m.move = nil
	}
	return m.table.Recall(ctx, key, placement, epoch)
}

func TestAForcedReturnTakesNoKeyThatHasComeHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation})
		m := &movedMeanwhile{table: r.table}
		b, err := paxosbridge.New(t.Context(), m, r.cluster,
			&paxosbridge.Config{Every: -1, Delegation: delegation, Logger: slog.New(slog.DiscardHandler)})
		r.must(err)
		r.must(r.MoveOut(t.Context(), "k", "test"))
		var here lease.Lease
		m.move = func() {
			r.must(r.MoveBack(t.Context(), "k", "test"))
			here = r.hold(r.Bridge, "k", 2)
		}
		r.must(b.ForceReturn(t.Context(), "k"))
		r.renewed(r.Bridge, here, lease.Extended)
		r.must(b.Close())
		_ = r.Close()
	})
}

// lateRecall is a table whose answer to a recall is late, as to a process that was stopped.
type lateRecall struct{ table }

func (l lateRecall) Recall(ctx context.Context, key string, placement int, epoch int64) (bool, error) {
	ok, err := l.table.Recall(ctx, key, placement, epoch)
	time.Sleep(3*delegation + time.Second) // between two reads of all rows
	return ok, err
}

// An audit calls a forgotten move back. Before it has the answer, the cluster is lost for a while
// and another process takes the key back by force.
func TestAnAnswerToARecallIsNoNewReadOfTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation})
		b, err := paxosbridge.New(t.Context(), lateRecall{r.table}, r.cluster, &paxosbridge.Config{
			Every: -1, Delegation: delegation, Refresh: delegation / 2, Logger: slog.New(slog.DiscardHandler),
		})
		r.must(err)
		r.must(r.cluster.Open(t.Context(), "k", 1)) // the database has forgotten that it left
		done := make(chan error, 1)
		go func() { done <- b.Audit(context.Background()) }()
		synctest.Wait()
		r.cluster.Fail(errDown)
		r.must(r.ForceReturn(t.Context(), "k"))
		q := request("k")
		q.TTL = 3 * delegation
		if a := r.ask(r.table, q); !a.Granted {
			t.Fatalf("the table answered %+v", a)
		}
		<-done
		r.cluster.Fail(nil)
		if a := r.ask(b, request("k")); a.Granted {
			t.Errorf("granted in epoch %d beside the table's holder", lease.Epoch(a.Token))
		}
		r.must(b.Close())
		_ = r.Close()
	})
}

// The cluster is lost for good, so that no audit can complete the return of a process that died.
func TestAWaiterFinishesAForcedReturnWithoutTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation})
		other := r.bridge(t, paxosbridge.Config{Delegation: delegation})
		locks, err := rowlock.New(other, nil)
		r.must(err)
		r.must(r.MoveOut(t.Context(), "k", "test"))
		r.cluster.Fail(errDown)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.wantIs(r.ForceReturn(ctx, "k"), context.DeadlineExceeded)
		r.must(r.Close()) // its process dies
		ctx, cancel = context.WithTimeout(t.Context(), 3*delegation)
		defer cancel()
		began := time.Now()
		if l, err := locks.Lock(ctx, "k"); err != nil {
			t.Errorf("the waiter has waited for %v: %v", time.Since(began), err)
		} else if took := time.Since(began); took < delegation || lease.Epoch(l.Token()) != 4 {
			t.Errorf("granted %+v after %v", l, took)
		}
		r.must(locks.Close())
		_ = other.Close()
	})
}

// A process died between the two steps that begin a forced return.
func TestAForcedReturnThatHasOnlyBegunIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		if _, err := r.table.Recall(t.Context(), "k", 32767, 2); err != nil {
			t.Fatal(err)
		}
		other := r.bridge(t, paxosbridge.Config{Delegation: delegation}) // does not know that it was away
		var a lease.Acquired
		began := time.Now()
		for !a.Granted && time.Since(began) < 4*delegation {
			time.Sleep(time.Minute)
			a = r.ask(other, request("k"))
		}
		if took := time.Since(began); took < delegation || lease.Epoch(a.Token) != 4 {
			t.Errorf("answered %+v after %v", a, took)
		}
		_ = other.Close()
		_ = r.Close()
	})
}

// A process with an old route asks the cluster, which is still there, only after it has read the
// row.
func TestAStaleRouteIsNotUsedWhileAKeyIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation, Refresh: delegation / 2})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		r.free(r.Bridge, r.hold(r.Bridge, "k", 1))
		// ForceReturn in another process.
		if _, err := r.table.Recall(t.Context(), "k", 32767, 3); err != nil {
			t.Fatal(err)
		}
		// A lease granted now may end later than the last read allows.
		time.Sleep(delegation/2 - time.Second)
		q := request("k")
		q.TTL = delegation/2 + 2*time.Second
		if a := r.ask(r.Bridge, q); a.Granted || a.Err != nil || a.Holder.Note == "" {
			t.Errorf("answered %+v", a)
		}
		_ = r.Close()
	})
}

// Two processes force the same return. The first completes it, the key is hot and leaves again, and
// then the second reads the row.
func TestAKeyThatHasLeftAgainIsTakenBackAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: delegation, Refresh: delegation / 2})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		// Of the first process.
		if _, err := r.table.Recall(t.Context(), "k", 32767, 3); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- r.ForceReturn(context.Background(), "k") }()
		synctest.Wait()
		if ok, err := r.table.Return(t.Context(), "k", 32767, 3); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if _, ok, err := r.table.Depart(t.Context(), r.hold(r.table, "k", 4), 1); !ok ||
			err != nil {
			t.Fatal(ok, err)
		}
		r.must(<-done)
		r.wantAt("k", 0, 8)
		_ = r.Close()
	})
}

func TestTheLongestDelegationIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{Delegation: math.MaxInt64})
		r.must(r.MoveOut(t.Context(), "k", "test"))
		l := r.hold(r.Bridge, "k", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r.wantIs(r.ForceReturn(ctx, "k"), context.DeadlineExceeded)
		if row := r.row("k"); row.Placement == lease.PlacementTable {
			t.Errorf("%+v is held, and the row is %+v", l, row)
		}
		_ = r.Close()
	})
}
