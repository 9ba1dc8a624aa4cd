// Package sqlx stands in for the real one.
package sqlx

import (
	"context"
	"database/sql"
)

type (
	DB struct{ *sql.DB }
	Tx struct{ *sql.Tx }
)

func (*DB) Beginx() (*Tx, error)                                              { return nil, nil }
func (*DB) BeginTxx(context.Context, *sql.TxOptions) (*Tx, error)             { return nil, nil }
func (*DB) MustBegin() *Tx                                                    { return nil }
func (*Tx) GetContext(context.Context, any, string, ...any) error             { return nil }
func (*Tx) NamedExecContext(context.Context, string, any) (sql.Result, error) { return nil, nil }
func (*Tx) MustExec(string, ...any) sql.Result                                { return nil }

func NamedExecContext(context.Context, any, string, any) (sql.Result, error) { return nil, nil }
