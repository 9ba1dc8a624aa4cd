package main

import (
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

func returning(query string) bool { return strings.Contains(query, " RETURNING ") }

func args(values ...driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(values))
	for i, v := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}

// clearer is what the drivers below database/sql have in common.
type clearer struct{ stmt driver.StmtExecContext }

func (c clearer) clear(key []byte, owner lease.Owner) error {
	res, err := c.stmt.ExecContext(unwatched, args(key, owner[:]))
	if err != nil {
		return err
	}
	return one(res)
}

func one(res driver.Result) error {
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errNotTaken, err)
	}
	return nil
}

type rawMySQL struct {
	clearer
	taking driver.StmtExecContext
}

func (r *rawMySQL) take(key []byte, owner lease.Owner) (int64, error) {
	res, err := r.taking.ExecContext(unwatched, args(owner[:], int64(ttl), key))
	if err != nil {
		return 0, err
	}
	if err := one(res); err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

type rawSQLite struct {
	clearer
	taking driver.StmtQueryContext
}

func (r *rawSQLite) take(key []byte, owner lease.Owner) (int64, error) {
	rows, err := r.taking.QueryContext(unwatched, args(owner[:], int64(ttl), key))
	if err != nil {
		return 0, err
	}
	row := make([]driver.Value, 1)
	err = rows.Next(row)
	token, _ := row[0].(int64)
	if err != nil {
		err = errNotTaken
	}
	return token, errors.Join(err, rows.Close())
}
