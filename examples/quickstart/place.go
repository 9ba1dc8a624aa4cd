package main

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/examples/internal/source"
)

// place is where all this happens: a database with tables of our own.
type place struct {
	*database
	own *source.Own
}

// prepare makes a table of ours beside rowlock's, in the same database: that is what lets a fence
// work.
func prepare(ctx context.Context, cfg settings) (*place, error) {
	own, err := source.OpenOwn(ctx, cfg.db, "quickstart")
	if err != nil {
		return nil, err
	}
	p := &place{&database{own.DB, own.Prefix}, own}
	for _, query := range []string{
		`CREATE TABLE {numbers} (name VARCHAR(20) PRIMARY KEY, value BIGINT NOT NULL)`,
		`INSERT INTO {numbers} (name, value) VALUES ('counter', 0), ('balance', 0)`,
	} {
		if _, err := p.ExecContext(ctx, p.sql(query)); err != nil {
			return nil, errors.Join(err, own.Remove(ctx, numbers))
		}
	}
	return p, nil
}

const numbers = "numbers"

// cleanUp removes everything, unless it is to be kept.
func (p *place) cleanUp(ctx context.Context, keep bool, s *story) error {
	if keep {
		s.line("kept: the tables %s* in %s", p.prefix, p.Shown())
		return p.Close()
	}
	return p.own.Remove(ctx, numbers)
}
