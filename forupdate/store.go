package forupdate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// DB is the part of a pool that New and NewLocker need: *sql.DB and *sqlx.DB have it. The caller
// closes it, afterwards.
type DB = dialect.DB

const (
	openTimeout      = 15 * time.Second
	statementTimeout = 5 * time.Second
	connections      = 4
)

// Store keeps locks as transactions that stay open. It is safe for concurrent use.
type Store struct {
	asRows
	rows  *table.Store // the data of the locks
	keys  keyRows      // the rows that are locked
	conns *conns
	turns turns

	mu     sync.Mutex
	holds  map[string]*hold // by key
	closed bool

	done     chan struct{} // closed by Close
	look     time.Duration // how often the holds are checked
	hurried  chan struct{} // buffered: check at once, and soon again
	watching sync.WaitGroup
}

// asRows is what the rows do for the store as for any other. Without registrations, a process would
// have to assume that another waits for every key, and keep making room for it. Listen does not
// hear of a key whose holder has died, and borrows one more connection of the pool, if there is one
// to spare.
type asRows interface {
	lease.Registry
	lease.Notifier
	lease.Graph
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Fencer     = (*Store)(nil)
	_ lease.TxReleaser = (*Store)(nil)
	_ lease.Sweeper    = (*Store)(nil)
	_ lease.Settler    = (*Store)(nil)
)

// New returns a store on the tables in db, for PostgreSQL, MySQL and MariaDB. It keeps four
// connections of the pool, one more to listen if the pool has room, and one for each held lock.
// Close it after the client. The options are Connections and Logger.
//
// SQLite is refused with lease.ErrUnsupported, and so is a dialect that is postgres.Pooled. New
// takes 15 s at most, even if the server does not answer.
func New(db DB, d dialect.Dialect, opts ...Option) (*Store, error) {
	return NewContext(context.Background(), db, d, opts...)
}

// NewContext is New, and returns the error of ctx if ctx ends before the store is open. Without a
// deadline in ctx it takes 15 s at most. The store goes on after ctx has ended; Close ends it.
func NewContext(ctx context.Context, db DB, d dialect.Dialect, opts ...Option) (*Store, error) {
	of, o, err := makeOptions(db, d, opts)
	if err != nil {
		return nil, err
	}
	if of.Silence == nil {
		return nil, fmt.Errorf("%w: the only lock of %s is on the whole file, so that a held lock would exclude every "+
			"writer, its holder too: use rowlock.Open or optimistic.New, or forupdate.NewLocker inside your own "+
			"transaction", lease.ErrUnsupported, d.Name())
	}
	limit := db.Stats().MaxOpenConnections
	if limit > 0 && limit < o.connections+connections+1 {
		return nil, fmt.Errorf("%w: MaxOpenConns (%d) must be at least %d: %d for held locks (forupdate.Connections), "+
			"%d for statements, and one for the application; raise it, or hold fewer",
			lease.ErrPool, limit, o.connections+connections+1, o.connections, connections)
	}
	ctx, cancel, err := sqlstore.Opening(ctx, "forupdate.NewContext", openTimeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	of = of.At(lease.PlacementTransaction).Serving(sqlstore.ForUpdate)
	rows, facts, err := table.Open(ctx, db, of, table.Options{
		Connections: connections, Timeout: statementTimeout,
		Hints: limit == 0 || limit > o.connections+connections+of.HintConnections(),
	})
	if err != nil {
		return nil, err
	}
	of = rows.Dialect()
	s := &Store{
		asRows: rows, rows: rows, keys: keyRows{rows, of},
		conns: &conns{db: db, d: of, most: o.connections, freed: make(chan struct{})},
		holds: make(map[string]*hold),
		done:  make(chan struct{}), look: o.look, hurried: make(chan struct{}, 1),
	}
	if err := s.rehearse(ctx); err != nil {
		s.conns.close()
		return nil, oneline.Join(err, rows.Close())
	}
	tell.Warn(ctx, o.logger, facts.Server, facts.Warnings)
	s.watching.Go(s.watch)
	return s, nil
}

// rehearse locks a key of its own, so that New finds a missing privilege, or a session that is not
// its own.
func (s *Store) rehearse(ctx context.Context) error {
	key := lease.Reserved + "hold/" + lease.NewOwner().String()
	made, err := s.keys.make(ctx, "acquire", []string{key})
	if err == nil && made == 0 {
		err = fmt.Errorf("%w: a row of rowlock_hold was not made: is there a trigger or a row policy on "+
			"the table?", lease.ErrCorrupt)
	}
	if err == nil {
		err = s.rehearseHold(ctx, key)
	}
	return sqlstore.ExplainPrivilege(ctx, s.conns.db, s.keys.d, err)
}

func (s *Store) rehearseHold(ctx context.Context, key string) error {
	c, err := s.conns.take(ctx, time.Minute)
	if err != nil {
		return err
	}
	got, err := c.lock(ctx, key)
	s.conns.giveBack(ctx, c)
	if err == nil && !got {
		err = fmt.Errorf("%w: a new row of rowlock_hold could not be locked", lease.ErrCorrupt)
	}
	if err == nil {
		_, err = s.keys.drop(ctx, []string{key})
	}
	return err
}

// Fence locks the row of l in tx if it still names its owner and token. The lock itself is on
// another row, and stays with its holder.
func (s *Store) Fence(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	return s.rows.Fence(ctx, tx, l)
}

// ReleaseTx releases l exactly if tx commits: its row at that moment, and the key within a quarter
// of a second, when this store has seen the row.
func (s *Store) ReleaseTx(ctx context.Context, tx lease.Runner, l lease.Lease) error {
	err := s.rows.ReleaseTx(ctx, tx, l)
	if err == nil {
		s.hurry()
	}
	return err
}

// Tables returns a value that is equal for stores of this package on the same tables: by it a
// client finds what its call chain holds through another. A key that is held through another kind
// of store is none of this one's.
func (s *Store) Tables() any { return s.rows.Tables() }

// Settle returns when no earlier statement runs any more, or when ctx ends. An acquire whose caller
// has left can be granted until then.
func (s *Store) Settle(ctx context.Context) { s.rows.Settle(ctx) }

// Close releases every lock by ending its transaction, and returns when the connections are closed.
// A Client releases its locks before.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	held := s.holds
	s.holds = nil
	s.mu.Unlock()
	s.watching.Wait()
	for _, h := range held {
		s.end(context.Background(), h, true)
	}
	s.conns.close()
	return s.rows.Close()
}

func (s *Store) check(verb, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("%w: %s %q", lease.ErrClosed, verb, key)
	}
	return nil
}
