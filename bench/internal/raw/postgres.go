package raw

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

type postgresql struct {
	clearer
	conn *pgx.Conn
}

func (r *postgresql) Take(key []byte, owner lease.Owner) (token int64, err error) {
	err = r.conn.QueryRow(rig.Unwatched, "take", owner[:], int64(ttl), key).Scan(&token)
	if errors.Is(err, pgx.ErrNoRows) {
		err = rig.ErrNotOne
	}
	return token, err
}
