package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/schema"
)

// place is where all this happens: a database with tables of our own.
type place struct {
	*database
	file string // made by us; or none
}

// prepare makes the tables. Their names are new every time, so that they can meet neither yours nor another quickstart's.
func prepare(ctx context.Context, cfg settings) (p *place, err error) {
	p = new(place)
	if _, err := os.Stat(cfg.db); cfg.db != "" && errors.Is(err, fs.ErrNotExist) && !strings.Contains(cfg.db, "://") {
		p.file = cfg.db
	}
	p.database, err = open(ctx, cfg.db, "quickstart_"+strings.ToLower(rand.Text()[:6])+"_")
	if err != nil {
		return nil, errors.Join(err, p.removeFile())
	}
	if err := p.makeTables(ctx); err != nil {
		return nil, errors.Join(err, p.remove(ctx))
	}
	return p, nil
}

// makeTables makes rowlock's tables and one of ours beside them, in the same database: that is what lets a fence work.
func (p *place) makeTables(ctx context.Context) error {
	if err := schema.Migrate(ctx, p.DB.DB.DB, p.Dialect); err != nil {
		return err
	}
	for _, query := range []string{
		`CREATE TABLE {numbers} (name VARCHAR(20) PRIMARY KEY, value BIGINT NOT NULL)`,
		`INSERT INTO {numbers} (name, value) VALUES ('counter', 0), ('balance', 0)`,
	} {
		if _, err := p.ExecContext(ctx, p.sql(query)); err != nil {
			return err
		}
	}
	return nil
}

var errLeft = errors.New("something was left behind")

// cleanUp removes everything, unless it is to be kept.
func (p *place) cleanUp(ctx context.Context, keep bool, s *story) error {
	if keep {
		s.line("kept: the tables %s* in %s", p.prefix, p.Shown())
		return p.Close()
	}
	return p.remove(ctx)
}

// remove works even if ctx has ended: that is how an interrupted run comes here.
func (p *place) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	_, ours := p.ExecContext(ctx, p.sql(`DROP TABLE IF EXISTS {numbers}`))
	err := errors.Join(ours, schema.Down(ctx, p.DB.DB.DB, p.Dialect), p.Close(), p.removeFile())
	if err != nil {
		return fmt.Errorf("%w, tables %s* in %s: %w", errLeft, p.prefix, p.Shown(), err)
	}
	return nil
}

func (p *place) removeFile() (err error) {
	if p.file == "" {
		return nil
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(p.file + suffix); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
