package migraterowlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	migraterowlock "github.com/rowlockdb/rowlock/adapters/migrate"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
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
