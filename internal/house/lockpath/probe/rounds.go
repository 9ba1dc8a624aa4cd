package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/coverage"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/schema"
)

const (
	// What few of the rounds enter is the background's, and lockpath leaves it out.
	rounds  = 15
	warmups = 10
	key     = "key"
	// rest is how long what a wait has begun takes to come to rest. A round that it is too short for
	// enters more.
	rest = 60 * time.Millisecond
)

// probe is two clients, as two processes have them.
type probe struct {
	folder       string
	socket       *socket
	mine, theirs *rowlock.Client
}

func run(ctx context.Context, dsn, folder string) (err error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	p := &probe{folder: folder, socket: new(socket)}
	cfg.DialFunc = p.socket.dialed(cfg.DialFunc)
	drop, err := makeSchema(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if err := schema.Migrate(ctx, pool(cfg), postgres.New()); err != nil {
		return err
	}
	for _, c := range []**rowlock.Client{&p.mine, &p.theirs} {
		quiet := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
		if *c, err = rowlock.Open(pool(cfg), postgres.New(), quiet); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, (*c).Close()) }()
	}
	return p.measure(ctx)
}

func pool(cfg *pgx.ConnConfig) *sql.DB { return stdlib.OpenDB(*cfg) }

// makeSchema gives cfg a schema of its own.
func makeSchema(ctx context.Context, cfg *pgx.ConnConfig) (drop func() error, err error) {
	name := fmt.Sprintf("lockpath_%d", os.Getpid())
	db := pool(cfg)
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+name); err != nil {
		return nil, err
	}
	cfg.RuntimeParams["search_path"] = name
	return func() error {
		_, err := db.ExecContext(ctx, "DROP SCHEMA "+name+" CASCADE")
		return errors.Join(err, db.Close())
	}, nil
}

func (p *probe) measure(ctx context.Context) error {
	// The watchdogs have an alarm set for these, which is sooner than that of any later lock. Without
	// one, whether a lock wakes its watchdog depends on which of two goroutines is faster.
	for _, c := range []*rowlock.Client{p.mine, p.theirs} {
		l, err := c.Lock(ctx, "alarm of "+fmt.Sprintf("%p", c), rowlock.TTL(15*time.Second))
		if err != nil {
			return err
		}
		defer func() { _ = l.Unlock(ctx) }()
	}
	debug.SetGCPercent(-1) // it empties pools, so that rounds would differ
	for round := -warmups; round < rounds; round++ {
		if err := p.alone(ctx, round); err != nil {
			return err
		}
	}
	for round := -warmups; round < rounds; round++ {
		if err := p.passed(ctx, round); err != nil {
			return err
		}
	}
	return p.stack(ctx)
}

// alone is a Lock and an Unlock of a key that no other client wants.
func (p *probe) alone(ctx context.Context, round int) error {
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	l, err := p.mine.Lock(ctx, key)
	if err != nil {
		return err
	}
	if err := l.Unlock(ctx); err != nil {
		return err
	}
	return p.write("alone", round)
}

// passed is a Lock and an Unlock of one client, and those of another that waits meanwhile. The key
// is one that was not passed before, because clients know for a while which keys are busy.
func (p *probe) passed(ctx context.Context, round int) error {
	key := fmt.Sprintf("passed in round %d", round)
	l, err := p.mine.Lock(ctx, key)
	if err != nil {
		return err
	}
	if err := l.Unlock(ctx); err != nil { // and the key has a row
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if l, err = p.mine.Lock(ctx, key); err != nil {
		return err
	}
	waits, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		l, err := p.theirs.Lock(ctx, key, rowlock.OnWait(func(rowlock.Waiting) {
			select {
			case waits <- struct{}{}:
			default:
			}
		}))
		if err == nil {
			err = l.Unlock(ctx)
		}
		ended <- err
	}()
	<-waits
	time.Sleep(rest)
	if err := errors.Join(l.Unlock(ctx), <-ended); err != nil {
		return err
	}
	return p.write("passed", round)
}

func (p *probe) write(what string, round int) error {
	if round < 0 {
		return nil
	}
	folder := filepath.Join(p.folder, what, strconv.Itoa(round))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(coverage.WriteMetaDir(folder), coverage.WriteCountersDir(folder))
}

func (p *probe) stack(ctx context.Context) error {
	p.socket.watch()
	l, err := p.mine.Lock(ctx, key)
	calls := p.socket.calls()
	if err != nil {
		return err
	}
	if err := l.Unlock(ctx); err != nil {
		return err
	}
	text := strings.Join(calls, "\n") + "\n"
	return os.WriteFile(filepath.Join(p.folder, "stack"), []byte(text), 0o600)
}
