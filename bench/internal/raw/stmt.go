package raw

import (
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

func returning(query string) bool { return strings.Contains(query, " RETURNING ") }

type mysql struct {
	clearer
	taking driver.StmtExecContext
}

func (r *mysql) Take(key []byte, owner lease.Owner) (int64, error) {
	res, err := r.taking.ExecContext(rig.Unwatched, rig.Args(owner[:], int64(ttl), key))
	if err != nil {
		return 0, err
	}
	if err := rig.One(res); err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

type sqlite struct {
	clearer
	taking driver.StmtQueryContext
}

func (r *sqlite) Take(key []byte, owner lease.Owner) (int64, error) {
	rows, err := r.taking.QueryContext(rig.Unwatched, rig.Args(owner[:], int64(ttl), key))
	if err != nil {
		return 0, err
	}
	row := make([]driver.Value, 1)
	err = rows.Next(row)
	token, _ := row[0].(int64)
	if err != nil {
		err = rig.ErrNotOne
	}
	return token, errors.Join(err, rows.Close())
}
