package groupreplication_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
)

func (r *rig) rows() (n int) {
	r.Helper()
	if err := r.primary().QueryRow(r.sql(`SELECT COUNT(*) FROM {rowlock}`)).Scan(&n); err != nil {
		r.Fatal(err)
	}
	return n
}

func TestARequestOfAnotherEpochMakesNoRowAndChangesNone(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	ask := func(epoch int64) error {
		got, err := c.Acquire(t.Context(), []lease.AcquireRequest{request("k", epoch)})
		if err != nil || got[0].Granted {
			t.Fatalf("epoch %d: %+v, %v", epoch, got, err)
		}
		return got[0].Err
	}
	before := r.rows()
	if err := ask(1); !errors.Is(err, paxosbridge.ErrRecord) || r.rows() != before {
		t.Errorf("a key without a record: %v, %d rows after %d", err, r.rows(), before)
	}
	r.must(c.Open(t.Context(), "k", 3))
	l := r.hold(c, request("k", 3))
	r.expire("k") // free for a request of its epoch
	for _, epoch := range []int64{1, 2, 4, 5} {
		if err := ask(epoch); !errors.Is(err, paxosbridge.ErrRecord) {
			t.Errorf("epoch %d of a key in 3: %v", epoch, err)
		}
	}
	rows, err := c.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
	if err != nil || rows[0].Lease != l {
		t.Errorf("the row is %+v, %v, want %+v", rows, err, l)
	}
}

func TestNoTokenFollowsTheLastOfAnEpoch(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	r.must(c.Open(t.Context(), "k", 1))
	end := lease.Token(2) << lease.EpochShift
	for _, epoch := range []int64{1, 0} {
		r.setToken("k", end-2)
		l := r.hold(c, request("k", epoch))
		if l.Token != end-1 {
			t.Fatalf("token %d, want %d", l.Token, end-1)
		}
		got, err := c.HandOver(t.Context(), []lease.HandOver{{From: l, To: request("k", epoch)}})
		if err != nil || got[0].Granted {
			t.Errorf("handed over beyond the epoch: %+v, %v", got, err)
		}
		r.release(c, l)
		got, err = c.Acquire(t.Context(), []lease.AcquireRequest{request("k", epoch)})
		if !errors.Is(err, lease.ErrTokenExhausted) {
			t.Errorf("beyond the epoch: %+v, %v", got, err)
		}
	}
	got, err := c.HandOver(
		t.Context(),
		[]lease.HandOver{
			{From: lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 7}, To: request("k", 1)},
		},
	)
	if err != nil || !errors.Is(got[0].Err, paxosbridge.ErrRecord) {
		t.Errorf("a hand-over from epoch 0 to 1: %+v, %v", got, err)
	}
}

func TestImpossibleEpochsAreRefused(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	for _, epoch := range []int64{-1, 0, 1 << 23, 1 << 40} {
		if err := c.Open(t.Context(), "k", epoch); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("open in epoch %d: %v", epoch, err)
		}
		if err := c.Supersede(t.Context(), "k", epoch); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("supersede in epoch %d: %v", epoch, err)
		}
	}
	got, err := c.Acquire(t.Context(), []lease.AcquireRequest{request("k", -1)})
	if !errors.Is(err, lease.ErrConfig) {
		t.Errorf("acquire in epoch -1: %+v, %v", got, err)
	}
}

// A primary that is cut off answers reads. So a repeated request of the holder is answered after a
// write that the group has agreed to.
func TestARepetitionIsAnsweredByAWrite(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	r.must(c.Open(t.Context(), "k", 1))
	q := request("k", 1)
	l := r.hold(c, q)
	executed := func() (set string) {
		r.Helper()
		r.must(r.primary().QueryRow(`SELECT @@GLOBAL.gtid_executed`).Scan(&set))
		return set
	}
	before := executed()
	if again := r.hold(c, q); again != l {
		t.Errorf("asked again: %+v, want %+v", again, l)
	}
	if after := executed(); after == before {
		t.Errorf("granted by a read: the group has agreed to nothing since %s", before)
	}
	if got, err := c.Acquire(t.Context(), []lease.AcquireRequest{request("k", 1)}); err != nil ||
		got[0].Granted {
		t.Errorf("another was answered %+v, %v", got, err)
	}
}

// faulty returns a cluster whose replies can be lost.
func (r *rig) faulty() (*groupreplication.Cluster, *faultdb.Switch) {
	r.Helper()
	faults, clean := &faultdb.Switch{}, r.dbs
	defer func() { r.dbs = clean }()
	r.dbs = nil
	for _, dsn := range r.dsns {
		db, err := faultdb.Open("mysql", dsn, faults)
		if err != nil {
			r.Fatal(err)
		}
		r.Cleanup(func() { _ = db.Close() })
		r.dbs = append(r.dbs, db)
	}
	return r.cluster(), faults
}

func TestARequestWithALostReplyIsRepeated(t *testing.T) {
	r := newRig(t)
	c, faults := r.faulty()
	ctx := t.Context()
	r.must(c.Open(ctx, "k", 1))
	for _, fault := range []struct {
		name string
		make faultdb.Fault
	}{{"lost", faultdb.LoseReply()}, {"not sent", faultdb.FailBeforeSend()}} {
		lose := func(text string) {
			faults.Set(faultdb.OnMatch(text, faultdb.Nth(1, fault.make)))
		}
		t.Run("acquire/"+fault.name, func(t *testing.T) {
			lose("SET token = LAST_INSERT_ID")
			q := request("k", 1)
			got, err := c.Acquire(ctx, []lease.AcquireRequest{q})
			if err != nil || !got[0].Granted || !got[0].Unknown {
				t.Fatalf("%+v, %v", got, err)
			}
			r.release(c, lease.Lease{Key: "k", Owner: q.Owner, Token: got[0].Token})
		})
	}
	faults.Set(nil)
	for epoch, fault := range []faultdb.Fault{faultdb.LoseReply(), faultdb.FailBeforeSend()} {
		key := fmt.Sprint("seal", epoch)
		r.must(c.Open(ctx, key, 1))
		l := r.hold(c, request(key, 1))
		faults.Set(faultdb.OnMatch("SET placement = -2", faultdb.Nth(1, fault)))
		if ok, err := c.Seal(ctx, l); err != nil || !ok {
			t.Errorf("sealed: %t, %v", ok, err)
		}
		if ok, err := c.Seal(ctx, l); err != nil || ok {
			t.Errorf("sealed again: %t, %v", ok, err)
		}
		faults.Set(faultdb.OnMatch("INSERT /*", faultdb.Nth(1, fault)))
		r.must(c.Open(ctx, key, 3))
		r.hold(c, request(key, 3))
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Acquire(ctx, []lease.AcquireRequest{request("k", 0)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %v", err)
	}
	if err := c.Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("probe: %v", err)
	}
}
