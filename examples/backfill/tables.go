package main

import (
	"context"
	"strings"

	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// tables are the products, and how far each shard of them is.
type tables struct {
	*source.DB
	prefix string
}

// sql fills in the tables' names and the database's own placeholders.
func (t *tables) sql(query string) string {
	names := strings.NewReplacer("{products}", t.prefix+"products", "{shards}", t.prefix+"shards")
	return t.Rebind(names.Replace(query))
}

// fill makes the tables: product 7 costs 7, and each shard begins at its first.
func (t *tables) fill(ctx context.Context, rows int64, shards int) error {
	for _, query := range []string{
		`CREATE TABLE {products} (id BIGINT NOT NULL PRIMARY KEY, price BIGINT NOT NULL)`,
		`CREATE TABLE {shards} (shard INT NOT NULL PRIMARY KEY, first BIGINT NOT NULL, last BIGINT NOT NULL, next BIGINT NOT NULL)`,
		`INSERT INTO {products} (id, price) VALUES (1, 1)`,
	} {
		if _, err := t.ExecContext(ctx, t.sql(query)); err != nil {
			return err
		}
	}
	for n := int64(1); n < rows; n *= 2 { // as many again, behind those that there are
		if _, err := t.ExecContext(ctx, t.sql(`INSERT INTO {products} (id, price)
			SELECT id + ?, price + ? FROM {products} WHERE id <= ?`), n, n, rows-n); err != nil {
			return err
		}
	}
	for shard := range int64(shards) {
		first, last := 1+rows*shard/int64(shards), rows*(shard+1)/int64(shards)
		if _, err := t.ExecContext(ctx, t.sql(`INSERT INTO {shards} (shard, first, last, next) VALUES (?, ?, ?, ?)`),
			shard, first, last, first); err != nil {
			return err
		}
	}
	return nil
}

// done is how many rows lie behind the shards' positions.
func (t *tables) done(ctx context.Context) (n int64, err error) {
	err = t.GetContext(ctx, &n, t.sql(`SELECT CAST(SUM(next - first) AS DECIMAL(20, 0)) FROM {shards}`))
	return n, err
}

// wrong counts the rows that were left out, and those that were changed more than once.
func (t *tables) wrong(ctx context.Context) (left, twice int64, err error) {
	err = t.QueryRowContext(ctx, t.sql(`SELECT COUNT(CASE WHEN price = id THEN 1 END),
		COUNT(CASE WHEN price > id * 100 THEN 1 END) FROM {products}`)).Scan(&left, &twice)
	return left, twice, err
}
