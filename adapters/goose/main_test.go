package gooserowlock_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/pressly/goose/v3"

	gooserowlock "github.com/rowlockdb/rowlock/adapters/goose"

	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) { adaptertest.Main(m, work) }

var dialects = map[string]goose.Dialect{
	"sqlite": goose.DialectSQLite3, "postgres": goose.DialectPostgres,
	"mysql": goose.DialectMySQL, "mariadb": goose.DialectMySQL,
}

// work migrates again and again: without versions each migration is always pending.
func work(ctx context.Context, w *adaptertest.Worker) error {
	locker := gooserowlock.NewLocker(w.Locks, "migrations")
	section := func(ctx context.Context, _ *sql.DB) error {
		l, _ := locker.Held()
		return w.Section(ctx, l)
	}
	p, err := goose.NewProvider(dialects[w.Kind], w.DB, nil, goose.WithDisableVersioning(true),
		goose.WithSessionLocker(locker),
		goose.WithGoMigrations(goose.NewGoMigration(1, &goose.GoFunc{RunDB: section}, nil)))
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		_, _ = p.Up(ctx) // what matters is told by the section
	}
	return nil
}

func TestProcessesThatAreKilledMigrateOneAfterTheOther(t *testing.T) {
	testdb.Each(t, adaptertest.Contend)
}
