package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/striped"
)

// shop is a database with a stock and the list of what was sold.
type shop struct {
	settings
	db    *source.Own
	locks *rowlock.Client
	stock *striped.Stripes
	loans atomic.Int64
}

// crowd is how many buyers are served at a time, and spare how many connections the locks keep.
const crowd, spare = 16, 6

func openShop(ctx context.Context, cfg settings) (s *shop, err error) {
	s = &shop{settings: cfg}
	if s.db, err = source.OpenOwn(ctx, cfg.db, "segments"); err != nil {
		return nil, err
	}
	s.db.SetMaxOpenConns(crowd + spare)
	s.db.SetMaxIdleConns(crowd + spare)
	for _, query := range []string{
		`CREATE TABLE {stock} (segment BIGINT NOT NULL PRIMARY KEY, items BIGINT NOT NULL)`,
		`CREATE TABLE {sold} (buyer BIGINT NOT NULL PRIMARY KEY, segment BIGINT NOT NULL, items BIGINT NOT NULL)`,
	} {
		if err == nil {
			err = s.exec(ctx, query)
		}
	}
	if err == nil {
		err = s.fill(ctx)
	}
	if err == nil {
		s.locks, err = rowlock.Open(s.db, s.db.Dialect, nil)
	}
	if err == nil {
		s.stock, err = striped.New(s.locks, "stock/42", cfg.segments)
	}
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// fill spreads the items over all segments but the last, whose delivery is late.
func (s *shop) fill(ctx context.Context) error {
	filled := max(1, s.segments-1)
	for segment := range s.segments {
		items := 0
		if segment < filled {
			items = (s.items + segment) / filled // they add up to all of them
		}
		err := s.exec(ctx, `INSERT INTO {stock} (segment, items) VALUES (?, ?)`, segment, items)
		if err != nil {
			return err
		}
	}
	return nil
}

// close removes the tables, also when ctx has ended.
func (s *shop) close(ctx context.Context) (err error) {
	if s.locks != nil {
		err = s.locks.Close()
	}
	return errors.Join(err, s.db.Remove(ctx, "stock", "sold"))
}

func (s *shop) count(ctx context.Context) (sold, left int64, err error) {
	err = s.db.GetContext(ctx, &sold, s.sql(`SELECT COALESCE(SUM(items), 0) FROM {sold}`))
	if err == nil {
		err = s.db.GetContext(ctx, &left, s.sql(`SELECT SUM(items) FROM {stock}`))
	}
	return sold, left, err
}

// sql fills in the tables' names and the database's own placeholders.
func (s *shop) sql(query string) string {
	names := strings.NewReplacer("{stock}", s.db.Table("stock"), "{sold}", s.db.Table("sold"))
	return s.db.Rebind(names.Replace(query))
}

func (s *shop) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.db.ExecContext(ctx, s.sql(query), args...)
	return err
}
