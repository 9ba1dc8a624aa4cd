package leaderrowlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	leaderrowlock "github.com/rowlockdb/rowlock/adapters/client-go"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var _ resourcelock.Interface = (*leaderrowlock.Lock)(nil)

const key = "controller"

func candidate(t *testing.T, e *testdb.Env, identity string) *leaderrowlock.Lock {
	t.Helper()
	l, err := leaderrowlock.New(adaptertest.Open(t, e), key, identity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not before: a lock that is garbage is released
		_ = l.Update(context.Background(), record("", 1))
	})
	return l
}

// record is what an elector writes.
func record(holder string, seconds int) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: seconds}
}

func TestTheRecordIsThatOfTheRow(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	a, b := candidate(t, e, "a"), candidate(t, e, "b")
	if _, _, err := b.Get(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("a key that is free: %v", err)
	}
	if err := a.Create(t.Context(), record("a", 60)); err != nil {
		t.Fatal(err)
	}
	first, raw, err := b.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.HolderIdentity != "a" || first.LeaseDurationSeconds != 60 || !strings.Contains(string(raw), `"a"`) {
		t.Errorf("%+v, %s", first, raw)
	}
	if err := a.Update(t.Context(), record("", 1)); err != nil { // as an elector resigns
		t.Fatal(err)
	}
	if err := b.Create(t.Context(), record("b", 60)); err != nil {
		t.Fatal(err)
	}
	next, _, err := a.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if next.HolderIdentity != "b" || next.LeaderTransitions <= first.LeaderTransitions {
		t.Errorf("%+v after %+v", next, first)
	}
}

func TestACandidateThatCannotLeadIsRefused(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	locks := adaptertest.Open(t, e)
	for _, refused := range []struct {
		locks         *rowlock.Client
		key, identity string
		want          error
	}{
		{nil, key, "a", rowlock.ErrConfig},
		{locks, key, "", rowlock.ErrConfig},
		{locks, key, strings.Repeat("long", 100), rowlock.ErrConfig},
		{locks, "", "a", rowlock.ErrInvalidKey},
	} {
		_, err := leaderrowlock.New(refused.locks, refused.key, refused.identity)
		adaptertest.WantIs(t, err, refused.want)
	}
	a := candidate(t, e, "a")
	adaptertest.WantIs(t, a.Create(t.Context(), record("b", 60)), rowlock.ErrConfig)
	adaptertest.WantIs(t, a.Create(t.Context(), record("a", 0)), rowlock.ErrConfig)
	if err := a.Create(t.Context(), record("a", 60)); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"b", "a"} { // another process, and one with the same identity
		err := candidate(t, e, other).Update(t.Context(), record(other, 60))
		adaptertest.WantIs(t, err, rowlock.ErrHeld)
		if !apierrors.IsConflict(err) {
			t.Errorf("an elector takes %v for no conflict", err)
		}
	}
}

func TestALostLockEndsItsTerm(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	lock := candidate(t, e, "a")
	ended := make(chan error, 1)
	// The elector gives up long after the loss is told: the term would end with its context.
	elect(t.Context(), lock, 15*time.Second, func(ctx context.Context) {
		l, _ := rowlock.FromContext(ctx)
		adaptertest.Steal(t, e, key)
		<-ctx.Done()
		adaptertest.WantIs(t, l.DoTx(t.Context(), adaptertest.Nothing), rowlock.ErrFenced)
		ended <- context.Cause(ctx)
	})
	adaptertest.WantIs(t, <-ended, rowlock.ErrLost)
}

// If Update took the lock again at once, the elector would not learn that there was another leader.
func TestACandidateLeadsAgainAfterItsElectorHasStopped(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	lock, mine := candidate(t, e, "a"), record("a", 1)
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	thief := adaptertest.Steal(t, e, key)
	adaptertest.Eventually(t, "the loss", func() bool { return lock.Update(t.Context(), mine) != nil })
	if err := thief.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	adaptertest.WantIs(t, lock.Update(t.Context(), mine), rowlock.ErrLost)
	lock.RecordEvent("stopped leading")
	for range 2 {
		if err := lock.Update(t.Context(), record("a", 60)); err != nil {
			t.Error(err)
		}
	}
}

// An elector without ReleaseOnCancel leaves its lock behind, as one that hangs does.
func TestALockThatItsElectorHasLeftPassesOn(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	a, b := candidate(t, e, "a"), candidate(t, e, "b")
	if err := a.Create(t.Context(), record("a", 1)); err != nil {
		t.Fatal(err)
	}
	a.RecordEvent("stopped leading")
	adaptertest.Eventually(t, "b to lead", func() bool { return b.Create(t.Context(), record("b", 60)) == nil })
	adaptertest.WantIs(t, a.Update(t.Context(), record("a", 1)), rowlock.ErrHeld)
	if err := b.Update(t.Context(), record("", 1)); err != nil {
		t.Error(err)
	}
	if err := a.Update(t.Context(), record("a", 1)); err != nil {
		t.Error(err)
	}
}
