package once

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Once makes effects happen once. It is safe for concurrent use. Use one per database, because
// repeats within it wait without a connection.
type Once struct {
	db     dialect.Pool
	d      *sqlstore.Dialect
	cfg    Config
	lines  lines
	doubts doubts

	stop    context.CancelFunc
	stopped context.Context
	wg      sync.WaitGroup
}

// openTimeout bounds New.
const openTimeout = 30 * time.Second

// New returns a Once on db, which stays the caller's. It refuses a database that would forget what
// was done. It runs every statement once in a transaction that it rolls back, so that a missing
// table or privilege is found now. It takes 30 s at most, even if the server does not answer.
func New(db dialect.Pool, d dialect.Dialect, cfg *Config) (*Once, error) {
	return NewContext(context.Background(), db, d, cfg)
}

// NewContext is New, and returns the error of ctx if ctx ends before the Once is open. Without a
// deadline in ctx it takes 30 s at most. The Once goes on after ctx has ended; Close ends it.
func NewContext(ctx context.Context, db dialect.Pool, d dialect.Dialect, cfg *Config) (*Once, error) {
	of, err := sqlstore.CheckOpen("once.New", db, d)
	if err != nil {
		return nil, err
	}
	o := &Once{db: db, d: of.Serving(sqlstore.Once), cfg: cfg.withDefaults(), lines: lines{at: make(map[place]*turn)}}
	if err := oneline.Join(o.cfg.check(), of.CheckNames()); err != nil {
		return nil, err
	}
	ctx, cancel, err := sqlstore.Opening(ctx, "once.NewContext", openTimeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	o.stopped, o.stop = context.WithCancel(context.Background())
	if o.cfg.Reap > 0 {
		o.wg.Go(o.reap)
	}
	return o, nil
}

// Close ends the background and refuses later calls. Calls in flight go on to their end, because
// they need only the pool.
func (o *Once) Close() error {
	o.stop()
	o.wg.Wait()
	tell.Of(o.cfg.Logger).Stop(time.Second)
	return nil
}

func (o *Once) check(ctx context.Context, r Request, f Func) error {
	if err := isnil.Context("once", ctx); err != nil {
		return err
	}
	if o.stopped.Err() != nil {
		return fmt.Errorf("%w: once %q", lease.ErrClosed, r.Key)
	}
	return r.check(f)
}

// explain turns a database's error into one of rowlock's. Nothing was committed; the caller says so
// if that is uncertain.
func (o *Once) explain(verb, key string, err error) error {
	return sqlstore.Judge(o.d, err).Explain(sqlstore.What(verb, key), err)
}

// MaxResult is the largest result in bytes that is kept, for callers that must know it before they
// make one.
func (o *Once) MaxResult() int { return o.cfg.MaxResult }
