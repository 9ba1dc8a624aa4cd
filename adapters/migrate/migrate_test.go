package migraterowlock_test

import (
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"

	migraterowlock "github.com/rowlockdb/rowlock/adapters/migrate"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var files = fstest.MapFS{
	"1_one.up.sql":   &fstest.MapFile{Data: []byte("CREATE TABLE one (n INTEGER)")},
	"1_one.down.sql": &fstest.MapFile{Data: []byte("DROP TABLE one")},
	"2_two.up.sql":   &fstest.MapFile{Data: []byte("CREATE TABLE two (n INTEGER)")},
}

// stolen is a driver of SQLite whose lock is lost while its first migration runs.
type stolen struct {
	database.Driver
	lose func()
	runs int
}

func (s *stolen) Run(migration io.Reader) error {
	s.runs++
	err := s.Driver.Run(migration)
	s.lose()
	return err
}

func own(t *testing.T, e *testdb.Env) database.Driver {
	t.Helper()
	d, err := sqlite.WithInstance(e.Pool(t), &sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMigrationsOfTheLibraryRunUnderTheLock(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	d, err := migraterowlock.New(own(t, e), adaptertest.Open(t, e), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	m, err := instance(d, files)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Up(); err != nil {
		t.Fatal(err)
	}
	if version, dirty, err := m.Version(); version != 2 || dirty || err != nil {
		t.Errorf("version %d, dirty %v, %v", version, dirty, err)
	}
	adaptertest.WantIs(t, m.Up(), migrate.ErrNoChange)
	if _, held := d.Held(); held {
		t.Error("a lock was left behind")
	}
}

func TestALostLockEndsTheMigrations(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	var d *migraterowlock.Driver
	s := &stolen{Driver: own(t, e), lose: func() {
		l, _ := d.Held()
		adaptertest.Steal(t, e, l.Key())
		<-l.Context().Done()
	}}
	d, err := migraterowlock.New(s, adaptertest.Open(t, e), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	m, err := instance(d, files)
	if err != nil {
		t.Fatal(err)
	}
	adaptertest.WantIs(t, m.Up(), rowlock.ErrLost)
	version, dirty, err := s.Version()
	if s.runs != 1 || version != 1 || !dirty || err != nil {
		t.Errorf("%d migrations have run; version %d, dirty %v, %v", s.runs, version, dirty, err)
	}
}

func TestADriverWithoutTheLockIsRefused(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	locks := adaptertest.Open(t, e)
	d, err := migraterowlock.New(own(t, e), locks, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{d.Unlock(), d.Run(strings.NewReader("")), d.SetVersion(1, false), d.Drop()} {
		adaptertest.WantIs(t, err, rowlock.ErrUnlocked)
		adaptertest.WantIs(t, err, database.ErrNotLocked)
	}
	if err := d.Lock(); err != nil {
		t.Fatal(err)
	}
	adaptertest.WantIs(t, d.Lock(), database.ErrLocked)
	if err := d.Unlock(); err != nil {
		t.Error(err)
	}
	_, err = migraterowlock.New(nil, locks, "migrations")
	adaptertest.WantIs(t, err, rowlock.ErrConfig)
}
