package main

import (
	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

type rawPostgres struct {
	clearer
	conn *pgx.Conn
}

func (r *rawPostgres) take(key []byte, owner lease.Owner) (token int64, err error) {
	err = r.conn.QueryRow(rig.Unwatched, "take", owner[:], int64(ttl), key).Scan(&token)
	return token, err
}
