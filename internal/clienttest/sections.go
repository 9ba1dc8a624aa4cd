package clienttest

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// SectionStore is a store on which DoTx works. Its transactions are in memory, and each can hand
// its lease over. A test says what becomes of a COMMIT.
type SectionStore struct {
	*FencingStore
	// OnCommit may call apply, which does what the transaction has written. The error is the COMMIT's.
	OnCommit func(apply func()) error
	// OnPass is called after a transaction's hand-over. Its error is the statement's.
	OnPass func(h lease.HandOver) error

	mu      sync.Mutex
	passed  []lease.HandOver
	strayed int
	asks    int         // whether other processes wait
	down    atomic.Bool // for renewals
}

// NewSectionStore returns a store whose COMMITs succeed.
func NewSectionStore() *SectionStore { return &SectionStore{FencingStore: NewFencingStore()} }

// Transactor knows this package's errors, which are those of every dialect.
func (s *SectionStore) Transactor() adapter.Transactor {
	return table.Transactor{Dialect: sqlstore.Of(sqlite.New())}
}

// Passed are the hand-overs that transactions have sent.
func (s *SectionStore) Passed() []lease.HandOver {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]lease.HandOver(nil), s.passed...)
}

var _ adapter.TxPasser = (*SectionStore)(nil)

// PassesInTx hands a lease over when the transaction is committed, after its server has strayed
// no more.
func (s *SectionStore) PassesInTx() adapter.PassInTx {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strayed > 0 {
		return nil
	}
	return func(_ context.Context, tx lease.Runner, h lease.HandOver) (lease.Token, error) {
		if err := s.check(h.From); err != nil {
			return 0, err
		}
		s.mu.Lock()
		s.passed = append(s.passed, h)
		s.mu.Unlock()
		t := tx.(*sectionTx)
		t.passes = append(t.passes, h)
		if s.OnPass != nil {
			if err := s.OnPass(h); err != nil {
				return 0, err
			}
		}
		return h.From.Token + 1, nil
	}
}

// Strayed has no transaction hand anything over.
func (s *SectionStore) Strayed() { s.mu.Lock(); s.strayed++; s.mu.Unlock() }

// Renew fails while the store is down for renewals.
func (s *SectionStore) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if s.down.Load() {
		return nil, ErrDown
	}
	return s.FencingStore.Renew(ctx, reqs)
}

// Awaited counts.
func (s *SectionStore) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	s.mu.Lock()
	s.asks++
	s.mu.Unlock()
	return s.Store.Awaited(ctx, process, keys)
}

// Fence is the FencingStore's.
func (s *SectionStore) Fence(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	return s.FencingStore.Fence(ctx, tx.(*sectionTx).Transaction, l)
}

// ReleaseTx is the FencingStore's.
func (s *SectionStore) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	return s.FencingStore.ReleaseTx(ctx, tx.(*sectionTx).Transaction, l)
}

type sectionTx struct {
	*Transaction
	s      *SectionStore
	passes []lease.HandOver
}

func (t *sectionTx) Commit(context.Context) error {
	apply := func() {
		_, _ = t.s.Store.HandOver(context.Background(), t.passes)
		t.Transaction.Commit()
	}
	if t.s.OnCommit != nil {
		return t.s.OnCommit(apply)
	}
	apply()
	return nil
}

func (t *sectionTx) End(context.Context, bool) { t.Transaction.End() }

// DoTx is that of a client of the store.
func (s *SectionStore) DoTx(
	ctx context.Context, c *rowlock.Client, key string, f func(ctx context.Context) error, opts ...rowlock.Option,
) error {
	begin := func(context.Context, *sql.TxOptions) (lease.Transaction, error) {
		return &sectionTx{Transaction: s.Begin(), s: s}, nil
	}
	return c.DoTxIn(ctx, []string{key}, begin, f, opts...)
}
