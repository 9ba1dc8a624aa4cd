package main

import (
	"context"
	"embed"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/schema"
)

// The service's own tables. Rowlock's are made by schema.Alone.
//
//go:embed migrations
var migrations embed.FS

var dialects = map[string]goose.Dialect{
	"postgres": goose.DialectPostgres, "mysql": goose.DialectMySQL, "sqlite": goose.DialectSQLite3,
}

// migrate brings the tables up to date, as the service does whenever it starts. goose does not lock
// meanwhile: of several servers that start on an empty database at once, some would fail. So one
// migrates at a time, and the others find nothing to do.
func migrate(ctx context.Context, db *source.DB) error {
	files, err := fs.Sub(migrations, "migrations/"+db.Dialect.Name())
	if err != nil {
		return err
	}
	return schema.Alone(ctx, db.DB.DB, db.Dialect, func(ctx context.Context) error {
		p, err := goose.NewProvider(dialects[db.Dialect.Name()], db.DB.DB, files)
		if err != nil {
			return err
		}
		_, err = p.Up(ctx)
		return err
	})
}
