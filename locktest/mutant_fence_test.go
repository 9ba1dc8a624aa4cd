package locktest

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// unlock lets a transaction keep nothing locked.
func (m *mutant) unlock(tx *memTx) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range tx.keys {
		delete(m.locked, key)
	}
	tx.keys = nil
}

func fenceBy(fence func(m *mutant, tx *memTx, l lease.Lease) error) func(m *mutant) {
	return func(m *mutant) {
		m.fence = func(ctx context.Context, r lease.Runner, l lease.Lease) error {
			if tx, ok := r.(*memTx); !ok || tx.store != m.fencing {
				return lease.ErrForeignTx
			}
			return fence(m, r.(*memTx), l)
		}
	}
}

var fenceFlaws = []flaw{
	{"a fence passes always", fenceBy(func(*mutant, *memTx, lease.Lease) error { return nil }), []string{
		"a fence refuses an old term, another owner and another token",
		"an expired key cannot be taken while its fence is open",
		"it can follow a fence, and no fence can follow it",
	}},
	{"a fence passes once", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		if len(tx.keys) > 0 {
			return lease.ErrFenced
		}
		return m.fencing.Fence(context.Background(), tx, l)
	}), []string{"a fence passes for the holder, again and again"}},
	{"a fence compares the token only", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		row, _ := m.row(l.Key)
		l.Owner = row.Owner
		return m.fencing.Fence(context.Background(), tx, l)
	}), []string{"a fence refuses an old term, another owner and another token"}},
	{"a fence locks nothing", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		defer m.unlock(tx)
		return m.fencing.Fence(context.Background(), tx, l)
	}), []string{
		"an expired key cannot be taken while its fence is open",
		"two transactions of one holder take turns",
		"a sweep leaves a row that a fence has",
	}},
	{"a fence looks first and locks later", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		if row, _ := m.row(l.Key); row.Lease != l {
			return lease.ErrFenced
		}
		time.Sleep(time.Millisecond)
		m.mu.Lock()
		defer m.mu.Unlock()
		tx.lock(l.Key)
		return nil
	}), []string{"a fence opened while others take the key lets nobody in"}},
	// What FOR SHARE comes to.
	{"fences of one holder go side by side", fenceBy(func(m *mutant, tx *memTx, l lease.Lease) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if row, _ := m.row(l.Key); row.Lease != l {
			return lease.ErrFenced
		}
		tx.lock(l.Key)
		return nil
	}), []string{"two transactions of one holder take turns"}},
	{"a fence of another database passes", func(m *mutant) {
		m.fence = func(context.Context, lease.Runner, lease.Lease) error { return nil }
	}, []string{"a transaction of another database is refused"}},
	// What a renewal without SKIP LOCKED comes to when it runs into its lock timeout.
	{"a renewal under the holder's fence is lost", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			a := m.extend(q)
			if a.Outcome == lease.Busy {
				a.Outcome = lease.Lost
			}
			return a
		})
	}, []string{"a renewal under the holder's own fence is not lost"}},
	{"renewals are busy while anything is locked", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			m.mu.Lock()
			busy := len(m.locked) > 0
			m.mu.Unlock()
			if busy {
				return lease.Renewed{Outcome: lease.Busy}
			}
			return m.extend(q)
		})
	}, []string{"a fence holds up no renewal and no acquire of another key"}},
}

var fenceRenewFlaws = []flaw{
	{"a renewing fence renews nothing", func(m *mutant) {
		m.renewing = func(ctx context.Context, tx lease.Runner, q lease.RenewRequest) error {
			return m.fencing.Fence(ctx, tx, q.Lease)
		}
	}, []string{"a renewing fence extends the lease when its transaction commits"}},
	{"a renewing fence renews at once", func(m *mutant) {
		m.renewing = func(ctx context.Context, tx lease.Runner, q lease.RenewRequest) error {
			m.extend(q)
			return m.fencing.Fence(ctx, tx, q.Lease)
		}
	}, []string{"a renewing fence extends nothing when its transaction rolls back"}},
	{"a renewing fence shortens the lease", func(m *mutant) {
		m.renewing = func(ctx context.Context, tx lease.Runner, q lease.RenewRequest) error {
			m.extend(q)
			return m.fencing.FenceRenew(ctx, tx, q)
		}
	}, []string{"a renewing fence never shortens a lease"}},
	{"a busy renewal is told of an expiry that is not committed", func(m *mutant) {
		m.eachRenew(func(q lease.RenewRequest) lease.Renewed {
			a := m.extend(q)
			a.Remaining = longer
			return a
		})
	}, []string{"a renewal behind a renewing fence is told what is committed"}},
	{"a renewing fence revives an expired lease", func(m *mutant) {
		m.renewing = func(ctx context.Context, tx lease.Runner, q lease.RenewRequest) error {
			if row, _ := m.row(q.Key); row.Lease == q.Lease && !row.Held {
				m.force(lease.AcquireRequest{Key: q.Key, Owner: q.Owner, TTL: q.TTL}, q.Token)
			}
			return m.fencing.Fence(ctx, tx, q.Lease)
		}
	}, []string{"a renewing fence passes for an expired lease and does not revive it"}},
	{"a renewing fence refuses an expired lease", func(m *mutant) {
		m.renewing = func(ctx context.Context, tx lease.Runner, q lease.RenewRequest) error {
			if row, _ := m.row(q.Key); !row.Held {
				return lease.ErrFenced
			}
			return m.fencing.FenceRenew(ctx, tx, q)
		}
	}, []string{"a renewing fence passes for an expired lease and does not revive it"}},
	{"a renewing fence passes always", func(m *mutant) {
		m.renewing = func(context.Context, lease.Runner, lease.RenewRequest) error { return nil }
	}, []string{"a renewing fence refuses an old term"}},
}

var releaseTxFlaws = []flaw{
	{"a release in a transaction does not wait for its end", func(m *mutant) {
		m.releaseTx = func(ctx context.Context, tx lease.Runner, l lease.Lease) error {
			if err := m.fencing.Fence(ctx, tx, l); err != nil {
				return err
			}
			m.unlock(tx.(*memTx))
			m.free(l)
			return nil
		}
	}, []string{
		"it takes effect when the transaction commits, and not before",
		"it is undone when the transaction rolls back",
	}},
	{"a release in a transaction never comes", func(m *mutant) { m.releaseTx = m.Fence }, []string{
		"it takes effect when the transaction commits, and not before",
		"it can follow a fence, and no fence can follow it",
	}},
	{"a release in a transaction looks at no term", func(m *mutant) {
		m.releaseTx = func(ctx context.Context, tx lease.Runner, l lease.Lease) error {
			row, _ := m.row(l.Key)
			return m.fencing.ReleaseTx(ctx, tx, row.Lease)
		}
	}, []string{"an old term is refused and frees nothing"}},
	{"a release in a transaction of another database is done at once", func(m *mutant) {
		m.releaseTx = func(_ context.Context, _ lease.Runner, l lease.Lease) error {
			m.free(l)
			return nil
		}
	}, []string{"it is refused in a transaction of another database"}},
}
