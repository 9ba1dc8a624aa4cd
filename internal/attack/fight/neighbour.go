//go:build linux

package fight

import (
	"context"
	"math/rand/v2"
	"time"
)

// neighbourSets is what another application sets in the sessions of PgBouncer that it shares with
// the workers, and leaves there. The workers' own transactions can live with it.
var neighbourSets = []string{
	`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ`,
	`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE`,
	`SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED`,
	`SET synchronous_commit = off`, `SET synchronous_commit = local`, `RESET synchronous_commit`,
	`SET array_nulls = off`, `SET bytea_output = escape`, `SET standard_conforming_strings = off`,
	`SET lock_timeout = 1`, `SET lock_timeout = 0`, `SET statement_timeout = 100`,
	`SET statement_timeout = 0`, `SET enable_indexscan = off`, `RESET ALL`,
}

// neighbour is another application behind the pooler of the workers, until ctx ends.
func (r *run) neighbour(ctx context.Context) error {
	db, err := r.database.Open(4)
	if err != nil {
		return err
	}
	defer db.Close()
	for ctx.Err() == nil {
		Sleep(ctx, time.Duration(rand.N(20))*time.Millisecond)
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			continue // its own statement_timeout ends it, now and then
		}
		if _, err := tx.ExecContext(ctx, neighbourSets[rand.N(len(neighbourSets))]); err != nil {
			_ = tx.Rollback()
			continue
		}
		_ = tx.Commit()
	}
	return nil
}
