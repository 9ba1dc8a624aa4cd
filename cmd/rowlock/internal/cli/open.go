package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
)

// connect returns the database, and what closes it.
func (p *program) connect(ctx context.Context) (*target.Target, func(), error) {
	t, err := target.Open(ctx, p.settings)
	if err != nil {
		return nil, nil, err
	}
	p.warn(t.Warning)
	return t, func() { _ = t.DB.Close() }, nil
}

// warn prints a warning without -v too, because it is about a password. An empty one is none.
func (p *program) warn(text string) {
	if text != "" {
		fmt.Fprintln(p.stderr, "rowlock: warning: "+listing.Plain(text))
	}
}

// config is for a client of a kind of database, that holds few locks.
func (p *program) config(t *target.Target) *rowlock.Config {
	cfg := &rowlock.Config{Logger: p.logger()}
	if t.Kind != "sqlite" {
		cfg.Connections = 2
	}
	return cfg
}

// logger is silent unless asked: a cron job that prints a warning sends a mail each time.
func (p *program) logger() *slog.Logger {
	if !p.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(p.stderr, nil))
}

// table returns the rows, checked, and what closes everything.
func (p *program) table(ctx context.Context) (*target.Target, rowlock.Table, func(), error) {
	t, closeDB, err := p.connect(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	table, err := rowlock.OpenTableContext(ctx, t.DB, t.Dialect, p.config(t))
	if err != nil {
		closeDB()
		return nil, nil, nil, p.cure(err)
	}
	return t, table, func() { _ = table.Close(); closeDB() }, nil
}

// client returns a client whose settings change has seen, and what closes everything.
func (p *program) client(ctx context.Context, change func(*rowlock.Config)) (
	*target.Target, *rowlock.Client, func(), error,
) {
	t, closeDB, err := p.connect(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	cfg := p.config(t)
	change(cfg)
	client, err := rowlock.OpenContext(ctx, t.DB, t.Dialect, cfg)
	if err != nil {
		closeDB()
		return nil, nil, nil, p.cure(err)
	}
	return t, client, func() { _ = client.Close(); closeDB() }, nil
}

// cure says what to type, where the library says what to call.
func (p *program) cure(err error) error {
	switch {
	case errors.Is(err, rowlock.ErrNoSchema):
		return fmt.Errorf("%w: run `rowlock migrate up%s`, or check --prefix, --schema and --dsn", err,
			p.settings.Flags())
	case errors.Is(err, rowlock.ErrSchemaVersion):
		return fmt.Errorf("%w: see `rowlock migrate status%s`", err, p.settings.Flags())
	}
	return err
}
