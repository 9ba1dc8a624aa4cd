package locktest

import (
	"errors"

	"github.com/rowlockdb/rowlock/lease"
)

var releaseTxProperties = []property{
	{"it takes effect when the transaction commits, and not before", releaseTxCommit},
	{"it is undone when the transaction rolls back", releaseTxRollback},
	{"it can follow a fence, and no fence can follow it", fenceThenRelease},
	{"an old term is refused and frees nothing", releaseTxRefuses},
	{"it is refused in a transaction of another database", releaseTxForeign},
}

func (r *rig) txReleaser() lease.TxReleaser {
	r.Helper()
	s := able[lease.TxReleaser](r, r.here)
	if r.h.Begin == nil {
		r.Skip("Harness.Begin is nil")
	}
	return s
}

func (r *rig) releaseTx(tx Tx, l lease.Lease) {
	r.Helper()
	if err := r.txReleaser().ReleaseTx(r.ctx, tx, l); err != nil {
		r.Fatalf("release %q with token %d in a transaction: %v", l.Key, l.Token, err)
	}
}

func releaseTxCommit(r *rig) {
	r.txReleaser()
	l := r.take("k")
	tx := r.begin()
	r.releaseTx(tx, l)
	q := request("k", lease.NewOwner())
	r.wantNotGranted(q)
	r.commit(tx)
	next := r.takeSoon(q, l)
	r.wantRenew(l, lease.Lost)
	r.wantRelease(l, true)
	r.wantHeld(next)
}

func releaseTxRollback(r *rig) {
	r.txReleaser()
	l := r.take("k")
	tx := r.begin()
	r.releaseTx(tx, l)
	r.rollback(tx)
	r.wantHeld(l)
}

func fenceThenRelease(r *rig) {
	s, f := r.txReleaser(), r.fencer()
	l := r.take("k")
	tx := r.begin()
	r.fence(tx, l)
	r.releaseTx(tx, l)
	if err := f.Fence(r.ctx, tx, l); !errors.Is(err, lease.ErrFenced) {
		r.Errorf("fence after a release in the same transaction: %v, want lease.ErrFenced", err)
	}
	if err := s.ReleaseTx(r.ctx, tx, l); !errors.Is(err, lease.ErrFenced) {
		r.Errorf("second release in the same transaction: %v, want lease.ErrFenced", err)
	}
	r.commit(tx)
	r.takeSoon(request("k", lease.NewOwner()), l)
}

func releaseTxRefuses(r *rig) {
	s := r.txReleaser()
	first := r.take("k")
	r.expire("k")
	second := r.takeAfter(first)
	wrong := second
	wrong.Token++
	for _, l := range []lease.Lease{first, wrong, {Key: "k", Owner: lease.NewOwner(), Token: second.Token}} {
		tx := r.begin()
		if err := s.ReleaseTx(r.ctx, tx, l); !errors.Is(err, lease.ErrFenced) {
			r.Errorf("release of %+v in a transaction: %v, want lease.ErrFenced", l, err)
		}
		r.commit(tx)
	}
	r.wantHeld(second)
}

func releaseTxForeign(r *rig) {
	s := r.txReleaser()
	if r.h.Foreign == nil {
		r.Skip("Harness.Foreign is nil")
	}
	l := r.take("k")
	tx := r.h.Foreign(r.TB)
	r.Cleanup(func() { _ = tx.Rollback() })
	if err := s.ReleaseTx(r.ctx, tx, l); !errors.Is(err, lease.ErrForeignTx) {
		r.Errorf("release in a transaction of another database: %v, want lease.ErrForeignTx", err)
	}
	r.wantHeld(l)
}
