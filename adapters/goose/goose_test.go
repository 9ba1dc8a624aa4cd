package gooserowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	gooserowlock "github.com/rowlockdb/rowlock/adapters/goose"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// provider has migrations in tables of the test's own.
func provider(t *testing.T, e *testdb.Env, opts ...goose.ProviderOption) *goose.Provider {
	t.Helper()
	prefix := e.Dialect.Names().Prefix
	files := fstest.MapFS{"1_one.sql": &fstest.MapFile{Data: []byte(
		"-- +goose Up\nCREATE TABLE " + prefix + "one (n INT);\n-- +goose Down\nDROP TABLE " + prefix + "one;\n")}}
	p, err := goose.NewProvider(dialects[e.Name], e.Pool(t), files,
		append(opts, goose.WithTableName(prefix+"version"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Exec(t, "DROP TABLE IF EXISTS "+prefix+"one")
		e.Exec(t, "DROP TABLE IF EXISTS "+prefix+"version")
	})
	return p
}

func TestBothLockersMigrateOnEachDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		locker := gooserowlock.NewLocker(adaptertest.Open(t, e), "migrations")
		for _, with := range []goose.ProviderOption{
			goose.WithSessionLocker(lock.SessionLocker(locker)), goose.WithLocker(lock.Locker(locker)),
		} {
			p := provider(t, e, with)
			if _, err := p.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := p.DownTo(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, held := locker.Held(); held {
			t.Error("a lock was left behind")
		}
		if _, err := gooserowlock.Up(t.Context(), e.DB, e.Dialect, provider(t, e)); err != nil {
			t.Error(err)
		}
	})
}

// goose's own locks only log their loss.
func TestALostLockEndsTheMigration(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		table := e.Dialect.Names().Prefix + "two"
		e.Exec(t, "CREATE TABLE "+table+" (n INT)")
		t.Cleanup(func() { e.Exec(t, "DROP TABLE "+table) })
		var fenced error
		up := func(ctx context.Context, tx *sql.Tx) error {
			l, _ := rowlock.FromContext(ctx)
			if _, err := tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES (1)"); err != nil {
				return err
			}
			adaptertest.Force(t, e, l.Key())
			fenced = l.Fence(ctx, tx)
			<-ctx.Done()
			return nil
		}
		p := provider(t, e, goose.WithGoMigrations(goose.NewGoMigration(2, &goose.GoFunc{RunTx: up}, nil)))
		_, err := gooserowlock.Up(t.Context(), e.DB, e.Dialect, p)
		adaptertest.WantIs(t, err, rowlock.ErrLost)
		adaptertest.WantIs(t, fenced, rowlock.ErrFenced)
		var n int
		if err := e.DB.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows were written after the loss (%v)", n, err)
		}
	})
}

func TestAMigrationUnderALockerTellsOfItsLoss(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	locker := gooserowlock.NewLocker(adaptertest.Open(t, e), "migrations")
	p := provider(t, e, goose.WithSessionLocker(locker), goose.WithGoMigrations(
		goose.NewGoMigration(2, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
			l, _ := locker.Held()
			adaptertest.Steal(t, e, l.Key())
			<-l.Context().Done()
			adaptertest.WantIs(t, l.DoTx(ctx, adaptertest.Nothing), rowlock.ErrFenced)
			return nil
		}}, nil)))
	_, err := p.Up(t.Context())
	adaptertest.WantIs(t, err, rowlock.ErrLost)
}

// As two processes do.
func TestTwoProvidersOnOnePoolMigrateOneAfterTheOther(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	db, waits, ended := e.Pool(t), make(chan struct{}, 9), make(chan error, 1)
	locker := gooserowlock.NewLocker(adaptertest.Open(t, e), "migrations",
		rowlock.OnWait(func(rowlock.Waiting) { waits <- struct{}{} }))
	up := func(version string, migrate func() error) error {
		p, err := goose.NewProvider(dialects[e.Name], db, nil, goose.WithTableName(version), goose.WithLocker(locker),
			goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{
				RunDB: func(context.Context, *sql.DB) error { return migrate() },
			}, nil)))
		if err == nil {
			_, err = p.Up(t.Context())
		}
		return err
	}
	var first, second *rowlock.Lock
	err := up("first", func() error {
		first, _ = locker.Held()
		go func() {
			ended <- up("second", func() error { second, _ = locker.Held(); return nil })
		}()
		select {
		case <-waits:
			return nil
		case err := <-ended:
			ended <- err
			return errors.New("the second did not wait")
		}
	})
	if err = errors.Join(err, <-ended); err != nil || second.Token() <= first.Token() {
		t.Error(err)
	}
}

// A pool is all that goose names.
func TestTheUnlockOfALostLockFreesNoOtherOfThePool(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	locker := gooserowlock.NewLocker(adaptertest.Open(t, e), "migrations")
	for range 2 {
		if err := locker.Lock(t.Context(), e.DB); err != nil {
			t.Fatal(err)
		}
		if l, _ := locker.Held(); l.Progress() == nil {
			thief := adaptertest.Steal(t, e, "migrations")
			<-l.Context().Done()
			if err := thief.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	adaptertest.WantIs(t, locker.Unlock(t.Context(), e.DB), rowlock.ErrLost)
	_, err := adaptertest.Open(t, e).TryLock(t.Context(), "migrations")
	adaptertest.WantIs(t, err, rowlock.ErrHeld)
	if err := locker.Unlock(t.Context(), e.DB); err != nil {
		t.Error(err)
	}
}

func TestASessionThatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	locker := gooserowlock.NewLocker(adaptertest.Open(t, e), "migrations")
	other, err := e.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	adaptertest.WantIs(t, locker.SessionUnlock(t.Context(), other), rowlock.ErrUnlocked)
	adaptertest.WantIs(t, locker.SessionLock(t.Context(), nil), rowlock.ErrConfig)
	adaptertest.WantIs(t, locker.Lock(t.Context(), nil), rowlock.ErrConfig)
	if err := locker.SessionLock(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	adaptertest.WantIs(t, locker.SessionLock(t.Context(), other), rowlock.ErrDeadlock)
	adaptertest.WantIs(t, locker.Unlock(t.Context(), e.DB), rowlock.ErrUnlocked)
	if err := locker.SessionUnlock(t.Context(), other); err != nil {
		t.Error(err)
	}
	_, err = gooserowlock.Up(t.Context(), e.DB, e.Dialect, nil)
	adaptertest.WantIs(t, err, rowlock.ErrConfig)
}
