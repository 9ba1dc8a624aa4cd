package migraterowlock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	migraterowlock "github.com/rowlockdb/rowlock/adapters/migrate"

	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) { adaptertest.Main(m, work) }

// driver is one whose migrations are a function.
type driver struct {
	database.Driver
	run func() error
}

func (driver) Lock() error                 { return nil }
func (driver) Unlock() error               { return nil }
func (driver) Close() error                { return nil }
func (driver) SetVersion(int, bool) error  { return nil }
func (driver) Version() (int, bool, error) { return database.NilVersion, false, nil }

// Run reads the migration to its end, as a driver does: migrate writes it meanwhile.
func (d driver) Run(migration io.Reader) error {
	if _, err := io.Copy(io.Discard, migration); err != nil {
		return err
	}
	return d.run()
}

func work(ctx context.Context, w *adaptertest.Worker) error {
	for ctx.Err() == nil {
		var d *migraterowlock.Driver
		d, err := migraterowlock.New(driver{run: func() error {
			l, _ := d.Held()
			return w.Section(ctx, l)
		}}, w.Locks, "migrations")
		if err != nil {
			return err
		}
		m, err := instance(d, fstest.MapFS{"1_one.up.sql": &fstest.MapFile{}})
		if err != nil {
			return err
		}
		if err := m.Up(); err != nil && errors.Is(err, migrate.ErrNoChange) {
			return err
		}
	}
	return nil
}

func instance(d database.Driver, files fstest.MapFS) (*migrate.Migrate, error) {
	source, err := iofs.New(files, ".")
	if err != nil {
		return nil, err
	}
	return migrate.NewWithInstance("iofs", source, "rowlock", d)
}

func TestProcessesThatAreKilledMigrateOneAfterTheOther(t *testing.T) {
	t.Parallel()
	adaptertest.Contend(t, testdb.Kinds[0].Open(t))
}
