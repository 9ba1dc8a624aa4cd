// Package section is a section of one key, Lock, BEGIN, Fence, UPDATE, COMMIT, Unlock, beside the
// transaction that has SELECT FOR UPDATE in place of the lock.
package section

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/dialect/postgres"
)

// Field is a client, and the rows that its keys protect.
type Field struct {
	Locks *rowlock.Client
	Add   string // the statement that writes the first row

	d     *rig.Database
	pgx   *pgxpool.Pool // nil: not on PostgreSQL
	table string
	rows  []row
	turn  atomic.Int64
}

// row is one that a key protects, and the statements that lock and write it.
type row struct{ key, lock, add string }

// New makes so many rows, each with a key. The sections of all callers take them in turn.
func New(ctx context.Context, d *rig.Database, rows int) (f *Field, err error) {
	f = &Field{d: d, table: d.Prefix + "fenced"}
	if _, err := d.Pool.ExecContext(ctx, `CREATE TABLE `+f.table+` (id INT PRIMARY KEY, n INT NOT NULL)`); err != nil {
		return nil, err
	}
	for id := range rows {
		if err := f.add(ctx, strconv.Itoa(id)); err != nil {
			return nil, errors.Join(err, f.drop())
		}
	}
	f.Add = f.rows[0].add
	if d.Driver == "pgx" {
		if f.pgx, err = native(ctx, d); err != nil {
			return nil, err
		}
	}
	f.Locks, err = rowlock.Open(d.Pool, d.Dialect, Config())
	return f, err
}

// Config is a client's. The reaper, which benchmarks do not time, is off.
func Config() *rowlock.Config {
	return &rowlock.Config{Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}}
}

// native is a pool of pgx itself.
func native(ctx context.Context, d *rig.Database) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.Source)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.ConnConfig.DialFunc = 16, d.Wire.Dial
	return pgxpool.NewWithConfig(ctx, config)
}

func (f *Field) add(ctx context.Context, id string) error {
	r := row{
		key:  "bench/fenced/" + id,
		lock: `SELECT n FROM ` + f.table + ` WHERE id = ` + id,
		add:  `UPDATE ` + f.table + ` SET n = n + 1 WHERE id = ` + id,
	}
	if f.d.Driver != "sqlite" {
		r.lock += ` FOR UPDATE`
	}
	f.rows = append(f.rows, r)
	_, err := f.d.Pool.ExecContext(ctx, `INSERT INTO `+f.table+` VALUES (`+id+`, 0)`)
	return err
}

// next is the row of the next section.
func (f *Field) next() row { return f.rows[int(f.turn.Add(1))%len(f.rows)] }

// Close removes them.
func (f *Field) Close() error {
	if f.pgx != nil {
		f.pgx.Close()
	}
	return errors.Join(f.Locks.Close(), f.drop())
}

func (f *Field) drop() error {
	_, err := f.d.Pool.Exec(`DROP TABLE ` + f.table)
	return err
}

// The names of the contenders.
const (
	Raw      = "SELECT FOR UPDATE"
	Unlock   = "Unlock"
	UnlockTx = "UnlockTx"
	DoTx     = "DoTx"
	OfPgx    = "DoTx of pgx" // in pgx itself
)

// Contenders are the ways to do it, and first the one without a lock.
func (f *Field) Contenders() []race.Contender {
	all := []race.Contender{
		{Name: Raw, Series: 'r', Pair: f.raw},
		{Name: Unlock, Series: 'u', Pair: f.byHand(false)},
		{Name: UnlockTx, Series: 't', Pair: f.byHand(true)},
		{Name: DoTx, Series: 'd', Pair: f.doTx},
	}
	if f.pgx != nil {
		all = append(all, race.Contender{Name: OfPgx, Series: 'p', Pair: f.doTxOfPgx})
	}
	return all
}

func (f *Field) raw(ctx context.Context, _ string) error {
	r := f.next()
	return f.inTx(ctx, r, func(tx *sql.Tx) error {
		var n int
		return tx.QueryRowContext(ctx, r.lock).Scan(&n)
	}, nil)
}

// ForUpdate is the transaction that locks its row and writes it.
func (f *Field) ForUpdate(ctx context.Context) error { return f.raw(ctx, "") }

// ForUpdateOfPgx is the same in pgx itself. It is only for PostgreSQL.
func (f *Field) ForUpdateOfPgx(ctx context.Context) error {
	r := f.next()
	return pgx.BeginFunc(ctx, f.pgx, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, r.lock).Scan(&n); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, r.add)
		return err
	})
}

// byHand releases within the transaction, or after it.
func (f *Field) byHand(within bool) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		r := f.next()
		l, err := f.Locks.Lock(ctx, r.key)
		if err != nil {
			return err
		}
		var release func(*sql.Tx) error
		if within {
			release = func(tx *sql.Tx) error { return l.UnlockTx(ctx, tx) }
		}
		err = f.inTx(ctx, r, func(tx *sql.Tx) error { return l.Fence(ctx, tx) }, release)
		return errors.Join(err, l.Unlock(ctx))
	}
}

func (f *Field) inTx(ctx context.Context, r row, before, after func(*sql.Tx) error) error {
	tx, err := f.d.Pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := before(tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, r.add); err != nil {
		return err
	}
	if after != nil {
		if err := after(tx); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (f *Field) doTx(ctx context.Context, _ string) error {
	r := f.next()
	return f.Locks.DoTx(ctx, r.key, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, r.add)
		return err
	})
}

func (f *Field) doTxOfPgx(ctx context.Context, _ string) error {
	r := f.next()
	return postgres.DoTx(ctx, f.Locks, f.pgx, r.key, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, r.add)
		return err
	})
}
