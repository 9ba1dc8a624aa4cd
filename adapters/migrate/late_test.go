package migraterowlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"

	migraterowlock "github.com/rowlockdb/rowlock/adapters/migrate"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// slow is a driver whose own lock another process has for a while.
type slow struct {
	driver
	takes  time.Duration
	locked bool
}

func (s *slow) Lock() error {
	time.Sleep(s.takes)
	s.locked = true
	return nil
}

func (s *slow) Unlock() error {
	s.locked = false
	return nil
}

// migrate.Migrate gives up after 15 s, and calls Unlock for no lock that comes later: this one would
// be renewed for as long as the process lives.
func TestALockThatMigrateHasGivenUpOnIsLeftToNoOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, err := rowlock.New(memstore.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close()
		s := &slow{takes: 16 * time.Second}
		d, err := migraterowlock.New(s, locks, "migrations")
		if err != nil {
			t.Fatal(err)
		}
		adaptertest.WantIs(t, d.Lock(), database.ErrLocked)
		if _, held := d.Held(); held || s.locked {
			t.Errorf("held %v; the driver's own lock: %v", held, s.locked)
		}
		l, err := locks.TryLock(t.Context(), "migrations")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// mute is a store whose releases fail until a moment.
type mute struct {
	lease.Store
	until time.Time
}

func (m mute) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	if time.Now().Before(m.until) {
		return nil, errors.New("no answer")
	}
	return m.Store.Release(ctx, leases)
}

// Migrate takes any error of Unlock for a lock that it has still.
func TestAReleaseThatIsTriedAgainLeavesNoMigrateLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, m := driven(t, mute{memstore.New(), time.Now().Add(4 * time.Second)}, func(*rowlock.Lock) {})
		for range 2 {
			if err := m.Up(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestANewMigrateGoesOnAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		d, m := driven(t, store, func(l *rowlock.Lock) {
			if l.Token() == 1 {
				rows, _ := store.Inspect(context.Background(), lease.Filter{Held: true})
				_, _ = store.Release(context.Background(), []lease.Lease{rows[0].Lease})
				<-l.Context().Done()
			}
		})
		adaptertest.WantIs(t, m.Up(), rowlock.ErrLost)
		again, err := instance(d, one)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Up(); err != nil {
			t.Error(err)
		}
	})
}

// one is a single migration: where it fails, migrate would go on to buffer a second one.
var one = fstest.MapFS{"1_one.up.sql": &fstest.MapFile{}}

// driven is a Driver on a store whose migrations are a function, and a Migrate.
func driven(t *testing.T, store lease.Store, run func(*rowlock.Lock)) (*migraterowlock.Driver, *migrate.Migrate) {
	t.Helper()
	locks, err := rowlock.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	var d *migraterowlock.Driver
	d, err = migraterowlock.New(driver{run: func() error {
		l, _ := d.Held()
		run(l)
		return nil
	}}, locks, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	m, err := instance(d, one)
	if err != nil {
		t.Fatal(err)
	}
	return d, m
}
