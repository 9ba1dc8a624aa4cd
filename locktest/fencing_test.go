package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

var (
	_ lease.RenewingFencer = (*fencing)(nil)
	_ lease.TxReleaser     = (*fencing)(nil)
	_ Tx                   = (*memTx)(nil)
)

// fencing adds transactions to the memory store, as far as Fence and ReleaseTx notice them, so that
// their properties run without a database.
type fencing struct {
	*memstore.Store
	mu     sync.Mutex
	locked map[string]int // transactions that have the key's row locked
}

func newFencing() *fencing {
	return &fencing{Store: memstore.New(), locked: make(map[string]int)}
}

func (f *fencing) begin() *memTx { return &memTx{store: f} }

func (f *fencing) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return f.unlocked(ctx, reqs, f.Store.Acquire)
}

func (f *fencing) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return f.unlocked(ctx, reqs, f.Store.Claim)
}

// unlocked has the memory store answer for keys whose row no transaction has locked.
func (f *fencing) unlocked(
	ctx context.Context, reqs []lease.AcquireRequest, take func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error),
) ([]lease.Acquired, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answers := make([]lease.Acquired, len(reqs))
	for i, q := range reqs {
		if row, ok := f.row(q.Key); ok && !row.Held && f.locked[q.Key] > 0 {
			continue // neither granted nor known how long
		}
		a, err := sole(take(ctx, []lease.AcquireRequest{q}))
		if err != nil {
			return nil, err
		}
		answers[i] = a
	}
	return answers, nil
}

func (f *fencing) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answers := make([]lease.Renewed, len(reqs))
	for i, q := range reqs {
		if row, ok := f.row(q.Key); ok && !q.Shared && row.Lease == q.Lease && f.locked[q.Key] > 0 {
			answers[i] = lease.Renewed{Outcome: lease.Busy, Remaining: row.Remaining}
			continue
		}
		a, err := sole(f.Store.Renew(ctx, []lease.RenewRequest{q}))
		if err != nil {
			return nil, err
		}
		answers[i] = a
	}
	return answers, nil
}

// Sweep does nothing while a transaction is open, as in SQLite.
func (f *fencing) Sweep(ctx context.Context, opts lease.SweepOptions) (int64, error) {
	f.mu.Lock()
	busy := len(f.locked) > 0
	f.mu.Unlock()
	if busy {
		return 0, nil
	}
	return f.Store.Sweep(ctx, opts)
}

func (f *fencing) Fence(ctx context.Context, r lease.Runner, l lease.Lease) error {
	tx, ok := r.(*memTx)
	if !ok || tx.store != f {
		return lease.ErrForeignTx
	}
	if l.Shared {
		return f.fenceShared(tx, l)
	}
	if err := f.await(ctx, tx, l.Key); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if row, ok := f.row(l.Key); !ok || row.Lease != l || l.Owner.IsZero() || slices.Contains(tx.releases, l) {
		return lease.ErrFenced
	}
	tx.lock(l.Key)
	return nil
}

// fenceShared lets the fences of members pass side by side.
func (f *fencing) fenceShared(tx *memTx, l lease.Lease) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if row, _ := f.row(l.Key); !row.Shared || row.Owner != lease.ReaderGroup(l.Token) {
		return lease.ErrFenced
	}
	tx.lock(l.Key)
	return nil
}

// Release leaves a reader group that a fence has, without its last member: its end skips a locked
// row.
func (f *fencing) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	answers := make([]lease.Released, len(leases))
	for i, l := range leases {
		f.mu.Lock()
		row, _ := f.row(l.Key)
		fenced := l.Shared && f.locked[l.Key] > 0 && row.Members == 1
		f.mu.Unlock()
		if fenced {
			f.ExpireMember(l.Key, l.Owner)
			continue
		}
		a, err := sole(f.Store.Release(ctx, []lease.Lease{l}))
		if err != nil {
			return nil, err
		}
		answers[i] = a
	}
	return answers, nil
}

// await locks the store's mutex when no other transaction has the key's row locked.
func (f *fencing) await(ctx context.Context, tx *memTx, key string) error {
	for {
		f.mu.Lock()
		if f.locked[key] == 0 || slices.Contains(tx.keys, key) {
			return nil
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// ForceRelease waits for a transaction that has the key's row locked.
func (f *fencing) ForceRelease(ctx context.Context, q lease.ForceRequest) (lease.Forced, error) {
	if err := f.await(ctx, &memTx{}, q.Key); err != nil {
		return lease.Forced{}, err
	}
	defer f.mu.Unlock()
	return f.Store.ForceRelease(ctx, q)
}

func (f *fencing) FenceRenew(ctx context.Context, r lease.Runner, q lease.RenewRequest) error {
	err := f.Fence(ctx, r, q.Lease)
	if err == nil {
		r.(*memTx).renews = append(r.(*memTx).renews, q)
	}
	return err
}

func (f *fencing) ReleaseTx(ctx context.Context, r lease.Runner, l lease.Lease) error {
	if err := f.Fence(ctx, r, l); err != nil {
		return err
	}
	tx := r.(*memTx)
	tx.releases = append(tx.releases, l)
	return nil
}

func (f *fencing) row(key string) (lease.Record, bool) {
	rows, err := f.Inspect(context.Background(), lease.Filter{Keys: []string{key}})
	if err != nil || len(rows) == 0 {
		return lease.Record{}, false
	}
	return rows[0], true
}

// memTx is a transaction that locks rows and remembers what to release.
type memTx struct {
	store    *fencing
	keys     []string
	releases []lease.Lease
	renews   []lease.RenewRequest
	done     bool
}

// lock needs the store's mutex.
func (tx *memTx) lock(key string) {
	if !slices.Contains(tx.keys, key) {
		tx.keys = append(tx.keys, key)
		tx.store.locked[key]++
	}
}

func (tx *memTx) Commit() error   { return tx.end(tx.renews, tx.releases) }
func (tx *memTx) Rollback() error { return tx.end(nil, nil) }

func (tx *memTx) end(renews []lease.RenewRequest, releases []lease.Lease) error {
	if tx.done {
		return errNoSQL
	}
	tx.done = true
	tx.store.mu.Lock()
	defer tx.store.mu.Unlock()
	for _, key := range tx.keys {
		if tx.store.locked[key]--; tx.store.locked[key] <= 0 {
			delete(tx.store.locked, key)
		}
	}
	renews = slices.DeleteFunc(renews, func(q lease.RenewRequest) bool {
		row, _ := tx.store.row(q.Key)
		return row.Remaining > q.TTL // what the holder was told stays true
	})
	_, renewed := tx.store.Store.Renew(context.Background(), renews)
	_, released := tx.store.Store.Release(context.Background(), releases)
	return errors.Join(renewed, released)
}

var errNoSQL = errors.New("the memory store's transaction is over, or was asked to run SQL")

func (*memTx) QueryOne(context.Context, string, []any, ...any) error { return errNoSQL }
func (*memTx) Exec(context.Context, string, []any) (int64, error)    { return 0, errNoSQL }

// fencingHarness opens what open makes. Hooks go to the store beneath.
func fencingHarness(open func() lease.Store) Harness {
	type based interface{ base() *fencing }
	return Harness{
		Open:     func(testing.TB) lease.Store { return open() },
		Expire:   func(_ testing.TB, s lease.Store, key string) { s.(based).base().Expire(key) },
		SetToken: func(_ testing.TB, s lease.Store, key string, n lease.Token) { s.(based).base().SetToken(key, n) },
		ExpireTicket: func(_ testing.TB, s lease.Store, key string, waiter lease.Owner) {
			s.(based).base().ExpireTicket(key, waiter)
		},
		AgeTicket: func(_ testing.TB, s lease.Store, key string, waiter lease.Owner, by time.Duration) {
			s.(based).base().AgeTicket(key, waiter, by)
		},
		ExpireMember: func(_ testing.TB, s lease.Store, key string, owner lease.Owner) {
			s.(based).base().ExpireMember(key, owner)
		},
		AgeIntents: func(_ testing.TB, s lease.Store, key string, by time.Duration) {
			s.(based).base().AgeIntents(key, by)
		},
		Begin:   func(_ testing.TB, s lease.Store) Tx { return s.(based).base().begin() },
		Foreign: func(testing.TB) Tx { return newFencing().begin() },
	}
}

func (f *fencing) base() *fencing { return f }

func TestFencingStore(t *testing.T) {
	h := fencingHarness(func() lease.Store { return newFencing() })
	h.Load = h.load() / 4
	h.Another = func(_ testing.TB, s lease.Store) lease.Store { return s }
	Run(t, h)
	RunRandom(t, h, 0)
}
