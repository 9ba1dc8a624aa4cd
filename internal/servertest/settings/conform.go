// Package settings holds what rowlock's statements mean against what a session or a server can be
// set to: the list of every setting with a verdict, and a short conformance that runs under it.
package settings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Refused is an error with which something refused to open, as it may: with a cause and a cure.
type Refused struct{ Err error }

// Error is the refusal's.
func (r Refused) Error() string { return r.Err.Error() }

// Unwrap returns it.
func (r Refused) Unwrap() error { return r.Err }

// refused marks an error of opening that names its cause. Any other is the server's own.
func refused(err error) error {
	if sqlstore.IsRefusal(err) {
		return Refused{err}
	}
	return err
}

// conformer is one short conformance.
type conformer struct {
	ctx        context.Context
	db         *sql.DB // whose sessions have the settings
	seen       *testdb.Env
	e          *testdb.Env
	c          *rowlock.Client // on db
	rival      *rowlock.Client // on e's own pool
	withoutOwn bool            // leave out the application's own transactions
}

// odd is a key with what literals and arrays might read as something else.
const odd = `settings ' \ " { } , NULL é`

// serial makes keys and tables that no other conformance has.
var serial atomic.Int64

// Conform runs everything that a client, a reader and an operator do, on a pool of seen whose
// sessions have some settings, against a rival on clean's own pool. The error says what was wrong.
// It is Refused if Open said that it cannot work here.
func Conform(ctx context.Context, db *sql.DB, seen, clean *testdb.Env) error {
	return (&conformer{ctx: ctx, db: db, seen: seen, e: clean}).run()
}

// ConformPinned is Conform without the application's own transactions, which have whatever settings
// the application gives them.
func ConformPinned(ctx context.Context, db *sql.DB, seen, clean *testdb.Env) error {
	return (&conformer{ctx: ctx, db: db, seen: seen, e: clean, withoutOwn: true}).run()
}

func (f *conformer) run() error {
	for _, st := range []rowlock.Strategy{rowlock.Update, rowlock.Insert} {
		if err := f.both(st); err != nil {
			return err
		}
	}
	return f.steps(
		step{"migrate", f.migrate}, step{"once", f.once}, step{"latch", f.latch},
		step{"optimistic", f.optimistic}, step{"forupdate", f.forUpdate},
	)
}

func config(st rowlock.Strategy) *rowlock.Config {
	c := &rowlock.Config{
		TTL: time.Minute, Strategy: st, Logger: slog.New(slog.DiscardHandler), Identity: "settings",
	}
	c.Reaper.Off, c.DurableRelease = true, true
	return c
}

// both runs what two clients do with each other.
func (f *conformer) both(st rowlock.Strategy) (err error) {
	if f.rival, err = rowlock.OpenContext(f.ctx, f.e.DB, f.e.Dialect, config(st)); err != nil {
		return fmt.Errorf("the rival: %w", refused(err))
	}
	defer func() { err = errors.Join(err, f.rival.Close()) }()
	if f.c, err = rowlock.OpenContext(f.ctx, f.db, f.seen.Dialect, config(st)); err != nil {
		return fmt.Errorf("open: %w", refused(err))
	}
	defer func() { err = errors.Join(err, f.c.Close()) }()
	return f.steps(
		step{"lock", f.lock}, step{"lock all", f.all}, step{"batches", f.batches},
		step{"share", f.share}, step{"fence", f.fence}, step{"unlock in a transaction", f.unlockTx},
		step{"slots", f.slots}, step{"in order", f.inOrder}, step{"sweep", f.sweep},
		step{"force", f.force},
	)
}

// own are the steps that have transactions of the application's.
var own = []string{"fence", "unlock in a transaction", "once", "migrate"}

type step struct {
	name string
	do   func() error
}

func (f *conformer) steps(all ...step) error {
	for _, s := range all {
		if f.withoutOwn && slices.Contains(own, s.name) {
			continue
		}
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// key is one that nothing else uses.
func (f *conformer) key() string { return fmt.Sprintf("%s %d", odd, serial.Add(1)) }

// wantHeld asks the rival for a key that it must not get.
func (f *conformer) wantHeld(by *rowlock.Client, key string) error {
	l, err := by.TryLock(f.ctx, key)
	var held *rowlock.HeldError
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("%q was granted twice, with token %d", key, l.Token()), l.Unlock(f.ctx))
	case !errors.As(err, &held):
		return fmt.Errorf("%q: %w, want ErrHeld", key, err)
	}
	return nil
}

// locked takes a free key.
func (f *conformer) locked(c *rowlock.Client, key string, opts ...rowlock.Option) (*rowlock.Lock, error) {
	l, err := c.TryLock(f.ctx, key, opts...)
	if err != nil {
		return nil, fmt.Errorf("a free key: %w", err)
	}
	return l, nil
}

// lock has the clients take turns with a key, and read each other's note.
func (f *conformer) lock() error {
	key, last := f.key(), rowlock.Token(0)
	for i := range 4 {
		c, other := f.c, f.rival
		if i%2 == 1 {
			c, other = other, c
		}
		l, err := f.locked(c, key, rowlock.Note(odd))
		if err != nil {
			return err
		}
		if l.Token() <= last {
			return fmt.Errorf("token %d after %d", l.Token(), last)
		}
		last = l.Token()
		var held *rowlock.HeldError
		_, err = other.TryLock(f.ctx, key)
		if !errors.As(err, &held) || held.Note != odd || held.Remaining > time.Minute ||
			held.Remaining < 50*time.Second {
			return fmt.Errorf("the loser was told %w (%+v)", err, held)
		}
		if err := l.Unlock(f.ctx); err != nil {
			return err
		}
	}
	return nil
}

// all locks keys together or not at all.
func (f *conformer) all() error {
	keys := []string{f.key(), f.key(), f.key()}
	ls, err := f.c.TryLockAll(f.ctx, keys) //rowlockvet:ignore after a failure the clients are closed
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := f.wantHeld(f.rival, k); err != nil {
			return err
		}
	}
	free := f.key()
	if _, err := f.c.TryLockAll(f.ctx, []string{free, keys[1]}); !errors.Is(err, rowlock.ErrHeld) {
		return fmt.Errorf("all of a held key: %w", err)
	}
	if err := ls.Unlock(f.ctx); err != nil {
		return err
	}
	again, err := f.rival.TryLockAll(f.ctx, append(keys, free))
	if err != nil {
		return fmt.Errorf("all of free keys: %w", err)
	}
	return again.Unlock(f.ctx)
}

// batches has many calls at once, which become statements of several changes. Of those for one key
// one is granted, and a key that is unlocked is granted again.
func (f *conformer) batches() error {
	const keys, each = 20, 3
	names := make([]string, keys)
	for i := range names {
		names[i] = f.key()
	}
	for range 2 {
		if err := f.batch(names, each); err != nil {
			return err
		}
	}
	return nil
}

func (f *conformer) batch(names []string, each int) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	got, wrong := make(map[string][]*rowlock.Lock), error(nil)
	for _, key := range names {
		for range each {
			wg.Go(func() {
				l, err := f.c.TryLock(f.ctx, key)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					got[key] = append(got[key], l)
				case !errors.Is(err, rowlock.ErrHeld):
					wrong = errors.Join(wrong, err)
				}
			})
		}
	}
	wg.Wait()
	for _, key := range names {
		if n := len(got[key]); n != 1 {
			wrong = errors.Join(wrong, fmt.Errorf("%q was granted %d times", key, n))
		}
		for _, l := range got[key] {
			wg.Go(func() {
				err := l.Unlock(f.ctx)
				mu.Lock()
				defer mu.Unlock()
				wrong = errors.Join(wrong, err)
			})
		}
	}
	wg.Wait()
	return wrong
}

// share has readers beside each other, and none beside a writer.
func (f *conformer) share() error {
	key := f.key()
	one, err := f.c.TryRLock(f.ctx, key) //rowlockvet:ignore after a failure the clients are closed
	if err != nil {
		return err
	}
	two, err := f.rival.TryRLock(f.ctx, key)
	if err != nil {
		return fmt.Errorf("a second reader: %w", err)
	}
	for _, l := range []*rowlock.Lock{one, two} {
		if err := errors.Join(f.wantHeld(f.rival, key), f.wantHeld(f.c, key), l.Unlock(f.ctx)); err != nil {
			return err
		}
	}
	l, err := f.locked(f.c, key)
	if err != nil {
		return err
	}
	if _, err := f.rival.TryRLock(f.ctx, key); !errors.Is(err, rowlock.ErrHeld) {
		return fmt.Errorf("a reader beside the writer: %w", err)
	}
	if err := l.Downgrade(f.ctx); err != nil {
		return err
	}
	if two, err = f.rival.TryRLock(f.ctx, key); err != nil {
		return fmt.Errorf("a reader after the downgrade: %w", err)
	}
	err = errors.Join(f.wantHeld(f.rival, key), l.Unlock(f.ctx), two.Unlock(f.ctx))
	if err != nil {
		return err
	}
	if l, err = f.locked(f.rival, key); err != nil {
		return err
	}
	return l.Unlock(f.ctx)
}
