package main

import (
	"context"

	"github.com/rowlockdb/rowlock/schema"
)

// tables are made by whichever replica comes first. A service with migrations does what
// examples/orders does.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS accounts (name VARCHAR(40) NOT NULL PRIMARY KEY, cents BIGINT NOT NULL, paid BIGINT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS entries (account VARCHAR(40) NOT NULL, cents BIGINT NOT NULL, why VARCHAR(60) NOT NULL)`,
}

// customers begin with a hundred euros each.
var customers = []string{"ada", "bob", "eve", "kim", "max", "zoe"}

const begin = 10_000

func (b *bank) migrate(ctx context.Context) error {
	return schema.Alone(ctx, b.db.DB.DB, b.db.Dialect, func(ctx context.Context) error {
		for _, query := range tables {
			if _, err := b.db.ExecContext(ctx, query); err != nil {
				return err
			}
		}
		var there int
		if err := b.db.GetContext(ctx, &there, `SELECT COUNT(*) FROM accounts`); err != nil || there > 0 {
			return err
		}
		return b.seed(ctx)
	})
}

func (b *bank) seed(ctx context.Context) error {
	tx, err := b.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, name := range append([]string{house}, customers...) {
		cents := begin
		if name == house {
			cents = 0
		}
		if _, err := tx.ExecContext(ctx, b.db.Rebind(`INSERT INTO accounts (name, cents, paid) VALUES (?, ?, 0)`), name, cents); err != nil {
			return err
		}
	}
	return tx.Commit()
}
