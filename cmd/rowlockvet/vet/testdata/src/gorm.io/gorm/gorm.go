// Package gorm stands in for the real one.
package gorm

import (
	"context"
	"database/sql"
)

type (
	DB struct {
		Error     error
		Statement *Statement
	}
	Statement struct{ ConnPool any }
)

func (*DB) Begin(...*sql.TxOptions) *DB                             { return nil }
func (*DB) Transaction(func(tx *DB) error, ...*sql.TxOptions) error { return nil }
func (*DB) WithContext(context.Context) *DB                         { return nil }
func (*DB) Model(any) *DB                                           { return nil }
func (*DB) Where(any, ...any) *DB                                   { return nil }
func (*DB) First(any, ...any) *DB                                   { return nil }
func (*DB) Create(any) *DB                                          { return nil }
func (*DB) Save(any) *DB                                            { return nil }
func (*DB) Update(string, any) *DB                                  { return nil }
func (*DB) Exec(string, ...any) *DB                                 { return nil }
func (*DB) Commit() *DB                                             { return nil }
func (*DB) Rollback() *DB                                           { return nil }
