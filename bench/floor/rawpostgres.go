package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/lease"
)

type rawPostgres struct{ conn *pgx.Conn }

func preparePostgres(ctx context.Context, c *pgx.Conn, take, clear string) (raw, error) {
	if _, err := c.Prepare(ctx, "take", take); err != nil {
		return nil, err
	}
	_, err := c.Prepare(ctx, "clear", clear)
	return &rawPostgres{c}, err
}

func (r *rawPostgres) take(key []byte, owner lease.Owner) (token int64, err error) {
	err = r.conn.QueryRow(unwatched, "take", owner[:], int64(ttl), key).Scan(&token)
	return token, err
}

func (r *rawPostgres) clear(key []byte, owner lease.Owner) error {
	tag, err := r.conn.Exec(unwatched, "clear", key, owner[:])
	if err == nil && tag.RowsAffected() != 1 {
		return errNotTaken
	}
	return err
}
