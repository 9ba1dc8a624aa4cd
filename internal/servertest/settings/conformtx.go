package settings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
	"github.com/rowlockdb/rowlock/semaphore"
)

// expire ends a key's lease in the store.
func (f *conformer) expire(key string) error {
	_, err := f.e.DB.ExecContext(f.ctx,
		f.e.SQL(`UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ?`), []byte(key))
	return err
}

// on is the dialect for a pool.
func (f *conformer) on(db *sql.DB) *sqlstore.Dialect {
	if db == f.db {
		return f.seen.Dialect
	}
	return f.e.Dialect
}

// in runs do in a transaction of the application's, on a session with the settings.
func (f *conformer) in(do func(tx *sql.Tx) error) error {
	tx, err := f.db.BeginTx(f.ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// fence passes its holder, and refuses the holder before it.
func (f *conformer) fence() error {
	l, err := f.locked(f.c, f.key())
	if err != nil {
		return err
	}
	fence := func(tx *sql.Tx) error { return l.Fence(f.ctx, tx) }
	if err := f.in(fence); err != nil {
		return err
	}
	if err := f.expire(l.Key()); err != nil {
		return err
	}
	next, err := f.locked(f.rival, l.Key())
	if err != nil {
		return err
	}
	if err := f.in(fence); !errors.Is(err, rowlock.ErrFenced) {
		return fmt.Errorf("the holder before was told %w, want ErrFenced", err)
	}
	_ = l.Unlock(f.ctx) // it is lost
	return errors.Join(f.wantHeld(f.c, l.Key()), next.Unlock(f.ctx))
}

func (f *conformer) unlockTx() error {
	l, err := f.locked(f.c, f.key())
	if err != nil {
		return err
	}
	if err := f.in(func(tx *sql.Tx) error { return l.UnlockTx(f.ctx, tx) }); err != nil {
		return err
	}
	next, err := f.locked(f.rival, l.Key())
	if err != nil {
		return err
	}
	_ = l.Unlock(f.ctx) // it is over
	return next.Unlock(f.ctx)
}

// slots has two permits, of which each client takes one.
func (f *conformer) slots() error {
	var permits [2]*semaphore.Permit
	name := fmt.Sprintf("settings-%d", serial.Add(1))
	for i, c := range []*rowlock.Client{f.c, f.rival} {
		s, err := semaphore.New(c, name, 2)
		if err != nil {
			return err
		}
		if permits[i], err = s.TryAcquire(f.ctx, 1); err != nil {
			return fmt.Errorf("permit %d: %w", i+1, err)
		}
	}
	s, err := semaphore.New(f.c, name, 2)
	if err != nil {
		return err
	}
	if _, err := s.TryAcquire(f.ctx, 1); !errors.Is(err, rowlock.ErrHeld) {
		return fmt.Errorf("a third permit of two: %w", err)
	}
	return errors.Join(permits[0].Release(f.ctx), permits[1].Release(f.ctx))
}

// inOrder locks with a client that serves waiters in order.
func (f *conformer) inOrder() (err error) {
	cfg := config(rowlock.Update)
	cfg.Fair = true
	c, err := rowlock.OpenContext(f.ctx, f.db, f.seen.Dialect, cfg)
	if err != nil {
		return refused(err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	key := f.key()
	one, err := c.Lock(f.ctx, key)
	if err != nil {
		return err
	}
	granted := make(chan error, 1)
	go func() {
		two, err := c.Lock(f.ctx, key)
		if err == nil {
			err = two.Unlock(f.ctx)
		}
		granted <- err
	}()
	return errors.Join(f.wantHeld(f.rival, key), one.Unlock(f.ctx), <-granted)
}

// sweep removes the rows of keys that are dead, and no others. The next token is above the last.
func (f *conformer) sweep() (err error) {
	table, err := rowlock.OpenTableContext(f.ctx, f.db, f.seen.Dialect, config(rowlock.Update))
	if err != nil {
		return refused(err)
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	held, err := f.locked(f.rival, f.key())
	if err != nil {
		return err
	}
	dead, err := f.locked(f.c, f.key())
	if err != nil {
		return err
	}
	if err := dead.Unlock(f.ctx); err != nil {
		return err
	}
	if err := f.expire(dead.Key()); err != nil {
		return err
	}
	if n, err := table.Sweep(f.ctx, lease.SweepOptions{}); err != nil || n == 0 {
		return fmt.Errorf("%d rows were removed: %w", n, err)
	}
	rows, err := f.c.Inspect(f.ctx, lease.Filter{Keys: []string{held.Key(), dead.Key()}})
	if err != nil || len(rows) != 1 || rows[0].Key != held.Key() {
		return fmt.Errorf("a sweep left %+v, %w", rows, err)
	}
	next, err := f.locked(f.rival, dead.Key())
	if err == nil && next.Token() <= dead.Token() {
		err = fmt.Errorf("token %d after %d, which was swept", next.Token(), dead.Token())
	}
	if err != nil {
		return err
	}
	return errors.Join(next.Unlock(f.ctx), held.Unlock(f.ctx))
}

// force takes a key from the rival, and reads the record.
func (f *conformer) force() error {
	l, err := f.locked(f.rival, f.key())
	if err != nil {
		return err
	}
	done, err := f.c.ForceRelease(f.ctx, l.Key(), rowlock.Force{Reason: odd})
	if err != nil {
		return err
	}
	if done.Lease.Token != l.Token() || done.Reason != odd {
		return fmt.Errorf("the record is %+v", done)
	}
	next, err := f.locked(f.c, l.Key())
	if err == nil && next.Token() <= l.Token() {
		err = fmt.Errorf("token %d after %d", next.Token(), l.Token())
	}
	if err != nil {
		return err
	}
	_ = l.Unlock(f.ctx) // it is lost
	return next.Unlock(f.ctx)
}

// once does something once, and answers a repetition by another process as the first time.
func (f *conformer) once() error {
	key := fmt.Sprintf("once %d", serial.Add(1))
	for i, db := range []*sql.DB{f.db, f.e.DB, f.db} {
		o, err := once.NewContext(f.ctx, db, f.on(db), &once.Config{Reap: -1, Logger: config(0).Logger})
		if err != nil {
			return refused(err)
		}
		res, err := o.Do(f.ctx, once.Request{Key: key}, func(context.Context, *sql.Tx) ([]byte, error) {
			return fmt.Appendf(nil, "%s %d", odd, i), nil
		})
		err = errors.Join(err, o.Close())
		if err != nil || string(res.Value) != odd+" 0" || res.Replayed != (i > 0) {
			return fmt.Errorf("call %d: %+v, %w", i, res, err)
		}
	}
	return nil
}

// latch has two parties, one in each process.
func (f *conformer) latch() error {
	name := fmt.Sprintf("latch %d", serial.Add(1))
	for _, db := range []*sql.DB{f.db, f.e.DB} {
		latches, err := latch.NewContext(f.ctx, db, f.on(db), &latch.Config{Logger: config(0).Logger})
		if err != nil {
			return refused(err)
		}
		l, err := latches.Open(f.ctx, name, 2)
		if err == nil {
			err = l.CountDown(f.ctx, fmt.Sprintf("%p", db))
		}
		if err == nil && db == f.e.DB {
			err = l.Await(f.ctx)
		}
		if err = errors.Join(err, latches.Close()); err != nil {
			return err
		}
	}
	return nil
}

// optimistic takes a key, keeps it from the rival, and releases it.
func (f *conformer) optimistic() error {
	return f.stores(func(db *sql.DB) (closable, error) {
		return optimistic.NewContext(f.ctx, db, f.on(db))
	})
}

func (f *conformer) forUpdate() error {
	return f.stores(func(db *sql.DB) (closable, error) {
		return forupdate.NewContext(f.ctx, db, f.on(db), forupdate.Logger(config(0).Logger))
	})
}

// closable is a store that its opener closes.
type closable interface {
	lease.Store
	io.Closer
}

func (f *conformer) stores(open func(db *sql.DB) (closable, error)) (err error) {
	key := f.key()
	seen, err := open(f.db)
	if err != nil {
		if errors.Is(err, lease.ErrUnsupported) {
			return nil // forupdate, on SQLite and behind a pooler
		}
		return refused(err)
	}
	defer func() { err = errors.Join(err, seen.Close()) }()
	clean, err := open(f.e.DB)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean.Close()) }()
	var last lease.Token
	for i := range 4 {
		s, other := seen, clean
		if i%2 == 1 {
			s, other = clean, seen
		}
		r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: time.Minute, Note: "settings"}
		got, err := s.Acquire(f.ctx, []lease.AcquireRequest{r})
		if err != nil || !got[0].Granted || got[0].Token <= last {
			return fmt.Errorf("a free key after token %d: %+v, %w", last, got, err)
		}
		last = got[0].Token
		l := lease.Lease{Key: key, Owner: r.Owner, Token: last}
		r.Owner = lease.NewOwner()
		lost, err := other.Acquire(f.ctx, []lease.AcquireRequest{r})
		if err != nil || lost[0].Granted {
			return fmt.Errorf("a held key: %+v, %w", lost, err)
		}
		renewed, err := s.Renew(f.ctx, []lease.RenewRequest{{Lease: l, TTL: time.Minute}})
		if err != nil || renewed[0].Outcome != lease.Extended {
			return fmt.Errorf("renew: %+v, %w", renewed, err)
		}
		if gone, err := s.Release(f.ctx, []lease.Lease{l}); err != nil || gone[0].Gone {
			return fmt.Errorf("release: %+v, %w", gone, err)
		}
	}
	return nil
}
