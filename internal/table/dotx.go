package table

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// mostSections is how often DoTx runs its function.
const mostSections = 5

// section is one call of DoTx, whose transactions it begins, ends and repeats.
type section struct {
	*adapter.Section
	d *sqlstore.Dialect

	marks bool // a savepoint tells whether the transaction is the one that was begun
	again bool // another attempt may succeed: nothing was committed
}

// Transactor runs transactions of a dialect's database.
type Transactor struct{ *sqlstore.Dialect }

// Transact runs the section until it has succeeded, or failed for good.
func (d Transactor) Transact(ctx context.Context, a *adapter.Section) (err error) {
	s := &section{Section: a, d: d.Dialect}
	pauses := retry.Pauses()
	for try := 1; ; try++ {
		// DDL of an earlier try may have committed the mark of its fence.
		s.marks = d.Forgets && (try > 1 || s.Unmarked)
		err = s.attempt(ctx)
		if err == nil || !s.again || try == mostSections || !retry.Sleep(ctx, pauses.NextBackOff()) {
			return err
		}
	}
}

// attempt is one transaction.
func (s *section) attempt(ctx context.Context) (err error) {
	s.again = false
	opts, committed := s.Opts, false
	tx, err := s.Begin(ctx, &opts)
	if err != nil {
		return s.failed("begin", err)
	}
	// One bound for all that it takes to end it: each part with a bound of its own would add up.
	ending := sync.OnceValues(func() (context.Context, context.CancelFunc) { return sqlstore.Ending(ctx) })
	defer func() { // also if the function panics, or calls runtime.Goexit
		end, stop := ending()
		defer stop()
		tx.End(end, committed)
	}()
	if err := s.Fence(ctx, tx); err != nil {
		s.again = errors.Is(err, lease.ErrBusy)
		return err
	}
	if s.marks {
		if err := s.d.Mark(ctx, tx); err != nil {
			return s.failed("begin", err)
		}
	}
	if err := s.Call(ctx); err != nil {
		if s.again = s.d.Collided(err); sqlstore.Judge(s.d, err).As == lease.ErrFenced {
			err = s.failed("write in", err)
		}
		return err
	}
	end, _ := ending()
	return s.commit(end, tx, &committed)
}

// commit ends a transaction in which the function has returned nil, even if the caller's ctx has
// ended.
func (s *section) commit(ctx context.Context, tx lease.Transaction, committed *bool) error {
	if s.marks {
		if err := s.d.Marked(ctx, tx); err != nil {
			return s.ended(err)
		}
	}
	if knows, ok := tx.(interface{ Over() error }); ok {
		if err := knows.Over(); err != nil {
			return s.ended(fmt.Errorf("rowlock: commit %q: %w", s.Keys, err))
		}
	}
	defer func() { s.Ended(ctx, *committed) }() // also if a driver panics
	if err := s.Leave(ctx, tx); err != nil {
		return s.ended(err)
	}
	err := tx.Commit(ctx)
	if *committed = err == nil; *committed {
		return nil
	}
	if sqlstore.Judge(s.d, err).Class != sqlstore.Unknown {
		return s.ended(s.failed("commit", err))
	}
	return fmt.Errorf("%w: the COMMIT of %q was not answered: %w; read whether it was done before you do it again",
		lease.ErrUnknown, s.Keys, err)
}

// ended is err, or what it means if the function has ended the transaction.
func (s *section) ended(err error) error {
	s.again = errors.Is(err, lease.ErrBusy)
	if v := sqlstore.Judge(s.d, err); v.Class == sqlstore.Unfit && v.As == nil && s.Strayed() {
		s.again = true
	}
	switch {
	case errors.Is(err, driver.ErrBadConn):
		return fmt.Errorf("%w: if the function has left rows open, close them before it returns", err)
	case !errors.Is(err, sql.ErrTxDone):
		return err
	}
	return fmt.Errorf("%w: DoTx of %q: the function has ended the transaction, which is not its own; if it has "+
		"committed, what it wrote is there: return nil to commit, and an error to roll back (%w)",
		lease.ErrConfig, s.Keys, err)
}

// failed explains an error of the database's, after which nothing was committed.
func (s *section) failed(what string, err error) error {
	v := sqlstore.Judge(s.d, err)
	s.again = v.Class == sqlstore.Conflict || errors.Is(err, driver.ErrBadConn)
	return v.Explain(fmt.Sprintf("%s the transaction of %q", what, s.Keys), err)
}
