package rig

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Hand is a connection with statements that are sent by hand, prepared where they have parameters.
type Hand struct {
	conn *Conn
	raw  any // what the driver has
	read map[string]Query
	set  map[string]Stmt
}

// Query is a prepared statement that reads one row.
type Query interface {
	// Row returns the row's values, or io.EOF if there is none.
	Row(args ...any) ([]any, error)
}

// NewHand takes a connection out of the pool and prepares statements: those of write, by name, change exactly one row each, and
// those of read return one.
func NewHand(ctx context.Context, d *Database, write, read map[string]string) (*Hand, error) {
	conn, err := Dial(ctx, d)
	if err != nil {
		return nil, err
	}
	h := &Hand{conn: conn, read: make(map[string]Query), set: make(map[string]Stmt)}
	err = conn.Raw(func(c any) (err error) {
		h.raw = c
		for name, text := range write {
			if h.set[name], err = Prepare(ctx, c, name, text); err != nil {
				return err
			}
		}
		for name, text := range read {
			if h.read[name], err = prepareQuery(ctx, c, name, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return h, nil
}

// Close ends the connection.
func (h *Hand) Close() { h.conn.Close() }

// Raw is what the driver has, for statements that are prepared beside its own.
func (h *Hand) Raw() any { return h.raw }

// Write runs a statement that changes one row.
func (h *Hand) Write(name string, args ...any) error { return h.set[name].Exec(args...) }

// Read runs a statement that returns one row.
func (h *Hand) Read(name string, args ...any) ([]any, error) { return h.read[name].Row(args...) }

// Say runs what has no parameters: BEGIN, and its like.
func (h *Hand) Say(text string) error {
	if pg, ok := h.raw.(*stdlib.Conn); ok {
		_, err := pg.Conn().Exec(Unwatched, text)
		return err
	}
	_, err := h.raw.(driver.ExecerContext).ExecContext(Unwatched, text, nil)
	return err
}

func prepareQuery(ctx context.Context, c any, name, text string) (Query, error) {
	if pg, ok := c.(*stdlib.Conn); ok {
		_, err := pg.Conn().Prepare(ctx, name, text)
		return queryPostgres{pg.Conn(), name}, err
	}
	s, err := c.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return query{s.(driver.StmtQueryContext)}, nil
}

type queryPostgres struct {
	conn *pgx.Conn
	name string
}

func (q queryPostgres) Row(args ...any) ([]any, error) {
	rows, err := q.conn.Query(Unwatched, q.name, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, errors.Join(io.EOF, rows.Err())
	}
	return rows.Values()
}

type query struct{ driver.StmtQueryContext }

func (q query) Row(args ...any) ([]any, error) {
	rows, err := q.QueryContext(Unwatched, Args(args...))
	if err != nil {
		return nil, err
	}
	values := make([]driver.Value, len(rows.Columns()))
	err = rows.Next(values)
	row := make([]any, len(values))
	for i, v := range values {
		row[i] = v
	}
	return row, errors.Join(err, rows.Close())
}
