package clienttest

import (
	"context"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// FencingStore is a store whose leases can be fenced and released within transactions of its own
// kind.
type FencingStore struct {
	*Script

	mu     sync.Mutex
	locked map[string]int // rows by the transactions that have them locked
}

// NewFencingStore returns a store whose renewals find a row busy that a transaction has locked.
func NewFencingStore() *FencingStore {
	f := &FencingStore{Script: NewScript(), locked: make(map[string]int)}
	f.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		answers := make([]lease.Renewed, len(reqs))
		for i, r := range reqs {
			if f.isLocked(r.Key) {
				answers[i].Outcome = lease.Busy
				continue
			}
			one, err := f.Store.Renew(ctx, []lease.RenewRequest{r})
			if err != nil {
				return nil, err
			}
			answers[i] = one[0]
		}
		return answers, nil
	}
	return f
}

func (f *FencingStore) isLocked(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.locked[key] > 0
}

// Transaction is a transaction of the caller's.
type Transaction struct {
	store    *FencingStore
	Fenced   []string
	released []lease.Lease
}

var errForeign = fmt.Errorf("%w: of a test", lease.ErrForeignTx)

func (*Transaction) QueryOne(context.Context, string, []any, ...any) error { return errForeign }

func (*Transaction) Exec(context.Context, string, []any) (int64, error) { return 0, errForeign }

func (t *Transaction) lock(key string) { t.change(key, 1); t.Fenced = append(t.Fenced, key) }

func (t *Transaction) change(key string, by int) {
	t.store.mu.Lock()
	t.store.locked[key] += by
	t.store.mu.Unlock()
}

// Begin begins a transaction.
func (f *FencingStore) Begin() *Transaction { return &Transaction{store: f} }

// End ends the transaction without a commit.
func (t *Transaction) End() {
	for _, key := range t.Fenced {
		t.change(key, -1)
	}
	t.Fenced = nil
}

// Commit makes the releases of the transaction, and ends it.
func (t *Transaction) Commit() {
	_, _ = t.store.Store.Release(context.Background(), t.released)
	t.End()
}

func (f *FencingStore) check(l lease.Lease) error {
	records, err := f.Inspect(context.Background(), lease.Filter{Keys: []string{l.Key}})
	if err != nil {
		return err
	}
	if len(records) != 1 || records[0].Lease != l {
		return fmt.Errorf("%w: %q", lease.ErrFenced, l.Key)
	}
	return nil
}

func (f *FencingStore) Fence(_ context.Context, tx lease.Runner, l lease.Lease) error {
	if err := f.check(l); err != nil {
		return err
	}
	tx.(*Transaction).lock(l.Key)
	return nil
}

func (f *FencingStore) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	if err := f.Fence(ctx, tx, l); err != nil {
		return err
	}
	tx.(*Transaction).released = append(tx.(*Transaction).released, l)
	return nil
}
