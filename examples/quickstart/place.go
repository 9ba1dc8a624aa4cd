package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/schema"
)

// place is where all this happens: a database with tables of our own.
type place struct {
	*database
	source string
	folder string // made by us, with the database in it; or none
	file   string // made by us; or none
}

// prepare makes the tables. Their names are new every time, so that they can meet neither yours nor another quickstart's.
func prepare(ctx context.Context, cfg settings) (p *place, err error) {
	p = &place{source: cfg.db}
	if p.source == "" {
		if p.folder, err = os.MkdirTemp("", "rowlock-quickstart-"); err != nil {
			return nil, err
		}
		p.source = filepath.Join(p.folder, "quickstart.db")
	} else if _, err := os.Stat(p.source); errors.Is(err, fs.ErrNotExist) && !strings.Contains(p.source, "://") {
		p.file = p.source
	}
	p.database, err = open(p.source, "quickstart_"+strings.ToLower(rand.Text()[:6])+"_")
	if err != nil {
		return nil, errors.Join(err, p.removeFiles())
	}
	if err := p.connect(ctx); err != nil {
		return nil, errors.Join(err, p.Close(), p.removeFiles())
	}
	if err := p.makeTables(ctx); err != nil {
		return nil, errors.Join(err, p.remove(ctx))
	}
	return p, nil
}

func (p *place) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := p.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to %s: %w", p.shown(), err)
	}
	return nil
}

// makeTables makes rowlock's tables and one of ours beside them, in the same database: that is what lets a fence work.
func (p *place) makeTables(ctx context.Context) error {
	if err := schema.Migrate(ctx, p.DB.DB, p.dialect); err != nil {
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

// name is the database's product and version.
func (p *place) name(ctx context.Context) string {
	query := map[string]string{"sqlite": `SELECT sqlite_version()`}[p.dialect.Name()]
	if query == "" {
		query = `SELECT version()`
	}
	var version string
	if err := p.GetContext(ctx, &version, query); err != nil {
		return p.dialect.Name()
	}
	switch {
	case p.dialect.Name() == "sqlite":
		return "SQLite " + version
	case strings.HasPrefix(version, "PostgreSQL"):
		version, _, _ = strings.Cut(version, " (")
		version, _, _ = strings.Cut(version, " on ")
		return version
	case strings.Contains(version, "MariaDB"):
		return "MariaDB " + strings.SplitN(version, "-", 2)[0]
	}
	return "MySQL " + version
}

var errLeft = errors.New("something was left behind")

// cleanUp removes everything, unless it is to be kept.
func (p *place) cleanUp(ctx context.Context, keep bool, s *story) error {
	if keep {
		s.line("kept: the tables %s* in %s", p.prefix, p.shown())
		return p.Close()
	}
	return p.remove(ctx)
}

// remove works even if ctx has ended: that is how an interrupted run comes here.
func (p *place) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	_, ours := p.ExecContext(ctx, p.sql(`DROP TABLE IF EXISTS {numbers}`))
	err := errors.Join(ours, schema.Down(ctx, p.DB.DB, p.dialect), p.Close(), p.removeFiles())
	if err != nil {
		return fmt.Errorf("%w, tables %s* in %s: %w", errLeft, p.prefix, p.shown(), err)
	}
	return nil
}

// shown is the source without a password.
func (p *place) shown() string {
	scheme, rest, isURL := strings.Cut(p.source, "://")
	if at := strings.LastIndex(rest, "@"); isURL && at >= 0 {
		return scheme + "://…" + rest[at:]
	}
	return p.source
}

func (p *place) removeFiles() error {
	if p.folder != "" {
		return os.RemoveAll(p.folder)
	}
	if p.file == "" {
		return nil
	}
	var err error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(p.file + suffix); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
