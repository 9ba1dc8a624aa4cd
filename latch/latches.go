package latch

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/opening"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// Latches opens latches and barriers on one database. It is safe for concurrent use. Use one per
// database, because waiters within it share their polls.
type Latches struct {
	server
	cfg   Config
	rows  registry
	hints hints

	instance string // of the tables
	stop     context.CancelFunc
	stopped  context.Context
	closing  sync.Mutex
	wg       sync.WaitGroup // of all that runs in the background
}

// openTimeout bounds New.
const openTimeout = 30 * time.Second

// New returns Latches on db, of which it keeps Config.Connections connections until Close. It
// refuses a database that would forget a count, missing tables and missing rights, which it names
// all at once. It takes 30 s at most.
func New(db dialect.DB, d dialect.Dialect, cfg *Config) (*Latches, error) {
	return NewContext(context.Background(), db, d, cfg)
}

// NewContext is New, and returns the error of ctx if ctx ends before the Latches are open. Without
// a deadline in ctx it takes 30 s at most. The Latches go on after ctx has ended; Close ends them.
func NewContext(ctx context.Context, db dialect.DB, d dialect.Dialect, cfg *Config) (*Latches, error) {
	of, err := sqlstore.CheckOpen("latch.New", db, d)
	if err != nil {
		return nil, err
	}
	s := &Latches{server: server{d: of.Serving(sqlstore.Latch)}, cfg: cfg.withDefaults()}
	s.kept = s.cfg.Keep
	if err := oneline.Join(s.cfg.check(), of.CheckNames()); err != nil {
		return nil, err
	}
	limit := db.Stats().MaxOpenConnections
	s.cfg.Connections, err = conn.Count(s.cfg.Connections, usualConnections, of.Connections(), limit, 1)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := sqlstore.Opening(ctx, "latch.NewContext", openTimeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := s.open(ctx, db); err != nil {
		return nil, sqlstore.ExplainPrivilege(ctx, db, s.d, err)
	}
	s.begin(db, limit)
	return s, nil
}

// open probes the server and the tables, and connects the pinned connections.
func (s *Latches) open(ctx context.Context, db dialect.DB) (err error) {
	s.d, err = opening.Examine(ctx, db, s.d, s.cfg.Logger, func(d *sqlstore.Dialect, c *sql.Conn) (err error) {
		s.instance, err = sqlstore.InstanceOf(ctx, c, d)
		return err
	})
	if err != nil {
		return err
	}
	s.connections, err = conn.Open(ctx, conn.Config[task]{
		DB: db, Conns: s.cfg.Connections, Timeout: timeout, Setup: s.d.Setup, Good: s.good,
		ReadOnly: s.d.ReadOnly,
	})
	if err != nil {
		return s.explain("connect", "", conn.NotSent{Err: err})
	}
	if err := s.rehearse(ctx); err != nil {
		s.connections.Close()
		return err
	}
	return nil
}

// rehearse runs a statement of each kind that the rights distinguish, on rows that are not there.
func (s *Latches) rehearse(ctx context.Context) error {
	row := rows.Row{Name: []byte(lease.Reserved + "latch"), ID: lease.NewOwner()}
	if _, err := s.look(ctx, row); err != nil {
		return err
	}
	if _, err := s.count(ctx, row, "none"); err != nil {
		return err
	}
	_, err := s.keep(ctx, row)
	return err
}

// begin starts what runs in the background.
func (s *Latches) begin(db dialect.DB, limit int) {
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.hints.open(s, db, limit)
	if s.cfg.Sweep > 0 {
		s.begins(s.sweepRegularly)
	}
}

// begins runs f in the background, unless the Latches are closed.
func (s *Latches) begins(f func()) bool {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.stopped.Err() != nil {
		return false
	}
	s.wg.Go(f)
	return true
}

// Close ends the background, has every call that waits return an error that wraps
// lease.ErrClosed, and gives the connections back. Parties in a barrier lose their heartbeat.
func (s *Latches) Close() error {
	s.closing.Lock()
	s.stop()
	s.closing.Unlock()
	s.wg.Wait()
	s.connections.Close()
	tell.Of(s.cfg.Logger).Stop(time.Second)
	return nil
}

func (s *Latches) check(ctx context.Context, name string) error {
	if err := isnil.Context("latch", ctx); err != nil {
		return err
	}
	if s.stopped.Err() != nil {
		return closed(name)
	}
	return lease.CheckKey(name)
}

func (s *Latches) checkParty(ctx context.Context, name, party string) error {
	if err := s.check(ctx, name); err != nil {
		return err
	}
	if err := lease.CheckKey(party); err != nil {
		return fmt.Errorf("latch %q: the name of a party is as a key: %w", name, err)
	}
	return nil
}

func checkParties(name string, parties int) error {
	if parties < 1 || parties > MaxParties {
		return fmt.Errorf("%w: latch %q for %d parties: the number must be between 1 and %d", lease.ErrConfig,
			name, parties, MaxParties)
	}
	return nil
}
