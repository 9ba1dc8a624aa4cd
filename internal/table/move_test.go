package table_test

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

const away = 3 // a placement

func eachMover(t *testing.T, f func(t *testing.T, r *rig)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(t, newRig(t, e, adapter.Update, 2)) })
}

// depart gives away a key that l holds.
func (r *rig) depart(t *testing.T, l lease.Lease) (epoch int64) {
	t.Helper()
	epoch, ok, err := r.store.Depart(t.Context(), l, away)
	if !ok || err != nil {
		t.Fatalf("depart %+v: %t, %v", l, ok, err)
	}
	return epoch
}

func (r *rig) wantRow(t *testing.T, key string, placement int, token lease.Token) {
	t.Helper()
	if row := r.row(t, key); row.Placement != placement || row.Token != token || row.Held || !row.Owner.IsZero() || row.Note != "" {
		t.Errorf("the row is %+v, want placement %d, token %d, and nobody", row, placement, token)
	}
}

// A key that has moved is refused by every operation of its old placement, for every caller.
func TestAKeyThatHasMovedIsRefused(t *testing.T) {
	eachMover(t, func(t *testing.T, r *rig) {
		l := hold(t, r.clean, "k")
		if epoch := r.depart(t, l); epoch != 1 {
			t.Errorf("epoch %d", epoch)
		}
		r.wantRow(t, "k", away, 1<<lease.EpochShift)
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			s := newRig(t, r.Env, strategy, 2).store
			_, err := ask(t.Context(), s, request("k"))
			wantIs(t, err, lease.ErrMoved)
			_, err = s.AcquireAll(t.Context(), requests("j", "k"))
			wantIs(t, err, lease.ErrMoved)
		}
		renewed, err := r.store.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
		wantIs(t, err, nil)
		if renewed[0].Outcome != lease.Lost {
			t.Errorf("its last lease here was renewed: %+v", renewed[0])
		}
		if !release(t, r.store, l).Gone {
			t.Error("its last lease here was there to be released")
		}
		handed, err := r.store.HandOver(t.Context(), []lease.HandOver{{From: l, To: request("k")}})
		wantIs(t, err, nil)
		if handed[0].Granted {
			t.Errorf("its last lease here was handed over: %+v", handed[0])
		}
		if _, ok, err := r.store.Depart(t.Context(), l, away); ok || err != nil {
			t.Errorf("departed twice: %t, %v", ok, err)
		}
		_, err = r.store.Sweep(t.Context(), lease.SweepOptions{Batch: 10})
		wantIs(t, err, nil)
		r.wantRow(t, "k", away, 1<<lease.EpochShift)
	})
}

func TestOnlyTheHolderGivesAKeyAway(t *testing.T) {
	eachMover(t, func(t *testing.T, r *rig) {
		l := hold(t, r.clean, "k")
		for _, other := range []lease.Lease{
			{Key: "k", Owner: lease.NewOwner(), Token: l.Token},
			{Key: "k", Owner: l.Owner, Token: l.Token + 1},
			{Key: "j", Owner: l.Owner, Token: l.Token},
		} {
			if _, ok, err := r.store.Depart(t.Context(), other, away); ok || err != nil {
				t.Errorf("%+v gave the key away: %t, %v", other, ok, err)
			}
		}
		if row := r.row(t, "k"); row.Lease != l || !row.Held {
			t.Errorf("the row is %+v", row)
		}
		for _, placement := range []int{0, -1, 1 << 15} {
			_, _, err := r.store.Depart(t.Context(), l, placement)
			wantIs(t, err, lease.ErrConfig)
		}
	})
}

func TestAKeyComesBackFromItsHomeInItsEpoch(t *testing.T) {
	eachMover(t, func(t *testing.T, r *rig) {
		epoch := r.depart(t, hold(t, r.clean, "k"))
		for _, c := range []struct {
			placement int
			epoch     int64
		}{{away + 1, epoch}, {away, epoch - 1}, {away, epoch + 1}} {
			if c.epoch == 0 {
				continue
			}
			if ok, err := r.store.Return(t.Context(), "k", c.placement, c.epoch); ok || err != nil {
				t.Errorf("came back from placement %d in epoch %d: %t, %v", c.placement, c.epoch, ok, err)
			}
		}
		for n, want := range []bool{true, false} {
			if ok, err := r.store.Return(t.Context(), "k", away, epoch); ok != want || err != nil {
				t.Errorf("return %d: %t, %v", n+1, ok, err)
			}
		}
		r.wantRow(t, "k", lease.PlacementTable, 2<<lease.EpochShift)
		l := hold(t, r.store, "k")
		if l.Token != 2<<lease.EpochShift+1 {
			t.Errorf("token %d", l.Token)
		}
		if epoch = r.depart(t, l); epoch != 3 {
			t.Errorf("epoch %d", epoch)
		}
		// A duplicate of the first return, which is late by a whole move.
		if ok, err := r.store.Return(t.Context(), "k", away, 1); ok || err != nil {
			t.Errorf("came back by an old return: %t, %v", ok, err)
		}
		r.wantRow(t, "k", away, 3<<lease.EpochShift)
	})
}

func TestRecallOnlyRaises(t *testing.T) {
	eachMover(t, func(t *testing.T, r *rig) {
		recall := func(placement int, epoch int64, want bool) {
			t.Helper()
			if ok, err := r.store.Recall(t.Context(), "k", placement, epoch); ok != want || err != nil {
				t.Errorf("recall to %d in epoch %d: %t, %v", placement, epoch, ok, err)
			}
		}
		recall(away, 3, true) // there is no row
		r.wantRow(t, "k", away, 3<<lease.EpochShift)
		recall(away, 3, false)
		recall(away, 1, false)
		recall(lease.PlacementTable, 4, true)
		l := hold(t, r.store, "k")
		recall(away, 3, false)
		recall(away, 4, false)
		if row := r.row(t, "k"); row.Lease != l {
			t.Errorf("the row is %+v", row)
		}
		recall(away, 5, true) // over a holder, whose database has forgotten that he cannot be one
		r.wantRow(t, "k", away, 5<<lease.EpochShift)
	})
}

// A row that is made by Recall goes on above what was swept, and one that is there is not raised by
// its bucket's floor.
func TestRecallHeedsTheFloor(t *testing.T) {
	eachMover(t, func(t *testing.T, r *rig) {
		r.Exec(t, `UPDATE {rowlock_floor} SET floor = ?`, int64(9)<<lease.EpochShift+7)
		if ok, err := r.store.Recall(t.Context(), "new", lease.PlacementTable, 2); !ok || err != nil {
			t.Fatal(ok, err)
		}
		r.wantRow(t, "new", lease.PlacementTable, 9<<lease.EpochShift+7)
		if ok, err := r.store.Recall(t.Context(), "away", away, 9); ok || err != nil {
			t.Fatal(ok, err)
		}
		if row := r.row(t, "away"); row.Key != "" {
			t.Errorf("a late call made %+v below the floor", row)
		}
		r.Exec(t, `UPDATE {rowlock_floor} SET floor = ?`, int64(3)<<lease.EpochShift-1)
		if ok, err := r.store.Recall(t.Context(), "away", away, 3); !ok || err != nil {
			t.Fatal(ok, err)
		}
		r.wantRow(t, "away", away, 3<<lease.EpochShift)
		r.Exec(t, `UPDATE {rowlock_floor} SET floor = ?`, int64(9)<<lease.EpochShift+7)
		if ok, err := r.store.Recall(t.Context(), "away", lease.PlacementTable, 3); ok || err != nil {
			t.Errorf("an epoch that is not older was recalled: %t, %v", ok, err)
		}
		r.wantRow(t, "away", away, 3<<lease.EpochShift)
		// The row is there, so no floor matters.
		if ok, err := r.store.Recall(t.Context(), "away", away, 5); !ok || err != nil {
			t.Errorf("not recalled: %t, %v", ok, err)
		}
	})
}

func TestAMovedKeyIsFencedByTheHighestTokenItWasFencedWith(t *testing.T) {
	eachMover(t, func(t *testing.T, r *rig) {
		old := hold(t, r.clean, "k")
		r.depart(t, old)
		granted := func(counter lease.Token) lease.Lease {
			return lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 1<<lease.EpochShift + counter}
		}
		fence := func(l lease.Lease, placement int, commit bool) error {
			tx, err := r.DB.BeginTx(t.Context(), nil)
			wantIs(t, err, nil)
			defer tx.Rollback()
			if err := r.store.FenceAt(t.Context(), lease.InTx(tx), placement, l); err != nil {
				return err
			}
			if commit {
				return tx.Commit()
			}
			return nil
		}
		wantIs(t, fence(granted(5), away, true), nil)
		wantIs(t, fence(granted(5), away, true), nil)
		wantIs(t, fence(granted(4), away, true), lease.ErrFenced)
		wantIs(t, fence(granted(9), away, false), nil) // rolled back
		wantIs(t, fence(granted(7), away, true), nil)
		wantIs(t, fence(granted(5), away, true), lease.ErrFenced)
		wantIs(t, fence(granted(8), away+1, true), lease.ErrFenced)
		wantIs(t, fence(old, away, true), lease.ErrFenced)
		next := granted(8)
		next.Token += 2 << lease.EpochShift
		wantIs(t, fence(next, away, true), lease.ErrFenced)
		if ok, err := r.store.Return(t.Context(), "k", away, 1); !ok || err != nil {
			t.Fatal(ok, err)
		}
		wantIs(t, fence(granted(8), away, true), lease.ErrFenced)
		r.wantRow(t, "k", lease.PlacementTable, 2<<lease.EpochShift)
	})
}

// departure and homecoming are deeds of the fault matrix: a reply that is lost leaves the key in
// one place.
var departure = deed{name: "depart", begin: func(c *cell) act {
	l := hold(c, c.clean, c.key)
	var ok bool
	return act{
		do: func(ctx context.Context) (err error) {
			_, ok, err = c.store.Depart(ctx, l, away)
			return err
		},
		check: func() {
			if !ok && !c.unresolved {
				c.Error("it is said not to have departed")
			}
			c.arrive(false)
			if row := c.row(c, c.key); row.Placement != away || row.Token != lease.EpochStart(lease.Epoch(l.Token)+1) || row.Held {
				c.Errorf("the row is %+v", row)
			}
			c.arrive(true)
			if row := c.row(c, c.key); row.Placement != away {
				c.Errorf("the row is %+v", row)
			}
		},
	}
}}

var homecoming = deed{name: "return", begin: func(c *cell) act {
	l := hold(c, c.clean, c.key)
	epoch, _, err := c.clean.Depart(c.Context(), l, away)
	wantIs(c, err, nil)
	var ok bool
	return act{
		do: func(ctx context.Context) (err error) {
			ok, err = c.store.Return(ctx, c.key, away, epoch)
			return err
		},
		check: func() {
			if !ok && !c.unresolved {
				c.Error("it is said not to have come back")
			}
			c.arrive(false)
			c.arrive(true)
			if row := c.row(c, c.key); row.Placement != lease.PlacementTable || row.Token != lease.EpochStart(epoch+1) {
				c.Errorf("the row is %+v", row)
			}
		},
	}
}}
