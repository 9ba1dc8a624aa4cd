package main

import (
	"context"
	"database/sql"
	"strings"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// database is the one that -db names, and the prefix of every table made here.
type database struct {
	*source.DB
	prefix string
}

func open(ctx context.Context, name, prefix string) (*database, error) {
	db, err := source.Open(ctx, name, dialect.Prefix(prefix))
	return &database{db, prefix}, err
}

// sql fills in the table's name and the database's own placeholders.
func (db *database) sql(query string) string {
	return db.Rebind(strings.ReplaceAll(query, "{numbers}", db.prefix+numbers))
}

// read returns one of our numbers.
func (db *database) read(ctx context.Context, name string) (value int64, err error) {
	err = db.GetContext(ctx, &value, db.sql(`SELECT value FROM {numbers} WHERE name = ?`), name)
	return value, err
}

// write changes it, whatever has happened since it was read.
func (db *database) write(ctx context.Context, name string, value int64) error {
	_, err := db.ExecContext(ctx, db.sql(`UPDATE {numbers} SET value = ? WHERE name = ?`), value, name)
	return err
}

// writeFenced changes it only if the lock is still held. Check and write are one transaction, and
// no other process can take the lock before it ends. So nothing can come between the two, however
// long the process is stopped there.
func (db *database) writeFenced(ctx context.Context, l *rowlock.Lock, name string, value int64) error {
	return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error { // it begins with l.Fence(ctx, tx)
		_, err := tx.ExecContext(ctx, db.sql(`UPDATE {numbers} SET value = ? WHERE name = ?`), value, name)
		return err
	})
}
