package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/optimistic"
)

// shelf is a row of the stock. It is all that is locked.
type shelf struct {
	ID      int64 `db:"id"`
	Items   int64 `db:"items"`
	Version int64 `db:"version"`
}

// shop is a database with the stock, the list of what was sold, and one lock of each kind.
type shop struct {
	settings
	db *source.Own

	locks *rowlock.Client
	rows  *forupdate.Locker
	table *optimistic.Table[shelf]

	thought atomic.Int64  // how many buyers without a lock have read
	second  chan struct{} // closed when two have
}

func openShop(ctx context.Context, cfg settings) (s *shop, err error) {
	s = &shop{settings: cfg, second: make(chan struct{})}
	if s.db, err = source.OpenOwn(ctx, cfg.db, "stock"); err != nil {
		return nil, err
	}
	s.db.SetMaxOpenConns(cfg.tills + spare)
	// database/sql keeps two by default, and connecting takes longer than selling.
	s.db.SetMaxIdleConns(cfg.tills + spare)
	for _, query := range []string{
		`CREATE TABLE {shelves} (id BIGINT NOT NULL PRIMARY KEY, items BIGINT NOT NULL, version BIGINT NOT NULL)`,
		`CREATE TABLE {sold} (way VARCHAR(40) NOT NULL, buyer BIGINT NOT NULL, shelf BIGINT NOT NULL, PRIMARY KEY (way, buyer))`,
	} {
		if err == nil {
			err = s.exec(ctx, query)
		}
	}
	if err == nil {
		err = s.openLocks()
	}
	if err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// spare is how many connections the locks keep to themselves, at most.
const spare = 6

func (s *shop) openLocks() (err error) {
	if s.locks, err = rowlock.Open(s.db, s.db.Dialect, nil); err != nil {
		return err
	}
	if s.rows, err = forupdate.NewLocker(s.db, s.db.Dialect); err != nil {
		return err
	}
	s.table, err = optimistic.NewTable[shelf](s.db.Dialect, s.db.Table("shelves"))
	return err
}

// close removes the tables, also when ctx has ended.
func (s *shop) close(ctx context.Context) (err error) {
	if s.locks != nil {
		err = s.locks.Close()
	}
	if s.rows != nil {
		err = errors.Join(err, s.rows.Close())
	}
	return errors.Join(err, s.db.Remove(ctx, "shelves", "sold"))
}

// sql fills in the tables' names and the database's own placeholders.
func (s *shop) sql(query string) string {
	return s.db.Rebind(strings.NewReplacer("{shelves}", s.db.Table("shelves"), "{sold}", s.db.Table("sold")).Replace(query))
}
