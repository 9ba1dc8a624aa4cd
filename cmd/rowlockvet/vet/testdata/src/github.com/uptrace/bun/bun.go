// Package bun stands in for the real one.
package bun

import (
	"context"
	"database/sql"
)

type (
	DB          struct{ *sql.DB }
	Tx          struct{ *sql.Tx }
	UpdateQuery struct{}
	SelectQuery struct{}
)

func (*DB) BeginTx(context.Context, *sql.TxOptions) (Tx, error) { return Tx{}, nil }
func (*DB) RunInTx(context.Context, *sql.TxOptions, func(context.Context, Tx) error) error {
	return nil
}
func (Tx) NewUpdate() *UpdateQuery                              { return nil }
func (Tx) NewSelect() *SelectQuery                              { return nil }
func (q *UpdateQuery) Model(any) *UpdateQuery                   { return q }
func (q *UpdateQuery) WherePK() *UpdateQuery                    { return q }
func (q *UpdateQuery) Exec(context.Context) (sql.Result, error) { return nil, nil }
func (q *SelectQuery) Model(any) *SelectQuery                   { return q }
func (q *SelectQuery) Scan(context.Context) error               { return nil }
