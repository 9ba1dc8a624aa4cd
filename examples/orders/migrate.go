package main

import (
	"context"
	"embed"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// The second file of each folder is rowlock's own, as schema.FS has it; a test keeps them the same.
// It could as well be the last: its place among ours is when we began to use it.
//
//go:embed migrations
var migrations embed.FS

var dialects = map[string]goose.Dialect{
	"postgres": goose.DialectPostgres, "mysql": goose.DialectMySQL, "sqlite": goose.DialectSQLite3,
}

// migrate brings the tables up to date, as the service does whenever it starts. goose does not lock
// meanwhile: of several servers that start on an empty database at once, one may fail, and is to be
// started again.
func migrate(ctx context.Context, db *source.DB) error {
	files, err := fs.Sub(migrations, "migrations/"+db.Dialect.Name())
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialects[db.Dialect.Name()], db.DB.DB, files)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}
