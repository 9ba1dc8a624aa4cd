package pgx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/bed"
)

// sessions asks every connection of the pool at once.
func sessions(t *testing.T, pool *pgxpool.Pool, query string) (answers []string) {
	t.Helper()
	var conns []*pgxpool.Conn
	for range pool.Config().MaxConns {
		c, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		var answer string
		if err := c.QueryRow(t.Context(), query).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	for _, c := range conns {
		c.Release()
	}
	return answers
}

// The application gets none of rowlock's connections: they have a statement_timeout of 5 s, no
// sequential scans, and a LISTEN.
func TestAClosedClientLeavesNoSettingsInThePool(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		for name, open := range map[string]func(*pgxpool.Pool) (*sql.DB, error){
			"OpenPool":       postgres.OpenPool,
			"OpenDBFromPool": func(p *pgxpool.Pool) (*sql.DB, error) { return stdlib.OpenDBFromPool(p), nil },
		} {
			t.Run(name, func(t *testing.T) {
				pool := newPool(t, d, 10, pgx.QueryExecModeCacheStatement)
				const query = `SELECT current_setting('statement_timeout') || current_setting('enable_seqscan') ||
					(SELECT count(*) FROM pg_listening_channels())`
				want := strings.Join(sessions(t, pool, query), " ")
				db, err := open(pool)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				useAll(t, pool, db, d)
				if got := strings.Join(sessions(t, pool, query), " "); got != want {
					t.Errorf("sessions have %q, had %q", got, want)
				}
			})
		}
	})
}

// useAll opens two clients, of which one waits for the other and listens, and closes them.
func useAll(t *testing.T, pool *pgxpool.Pool, db *sql.DB, d bed.Database) {
	t.Helper()
	var clients [2]*rowlock.Client
	for n := range clients {
		c, err := rowlock.Open(db, d.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		clients[n] = c
	}
	held, err := clients[0].TryLock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.KeepAlive(held) // a lock whose handle is garbage is released
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error)
	go func() {
		_, err := clients[1].Lock(ctx, "key")
		waited <- err
	}()
	wait(t, pool, 7) // 3 for each, and one that listens
	cancel()
	if err := <-waited; !errors.Is(err, rowlock.ErrHeld) {
		t.Error(err)
	}
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// wait returns when so many connections of pool are taken.
func wait(t *testing.T, pool *pgxpool.Pool, taken int32) {
	t.Helper()
	for end := time.Now().Add(time.Minute); pool.Stat().AcquiredConns() != taken; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are taken, want %d", pool.Stat().AcquiredConns(), taken)
		}
	}
}

func TestAPoolThatIsTooSmallIsRefused(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		for most, enough := range map[int32]bool{1: false, 2: false, 3: true, 4: true} {
			pool := newPool(t, d, most, pgx.QueryExecModeCacheStatement)
			db, err := postgres.OpenPool(pool)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			locks, err := rowlock.Open(db, d.Dialect, nil)
			if !enough {
				if !errors.Is(err, rowlock.ErrPool) {
					t.Errorf("a pool of %d: %v, want %v", most, err, rowlock.ErrPool)
				}
				continue
			}
			if err != nil {
				t.Fatalf("a pool of %d: %v", most, err)
			}
			conn, err := pool.Acquire(t.Context()) // one is left
			if err != nil {
				t.Fatal(err)
			}
			conn.Release()
			if err := locks.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestSQLTxKeepsTheTransactionOpen(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		pool := newPool(t, d, 4, pgx.QueryExecModeCacheStatement)
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		failed := errors.New("failed")
		ctx, cancel := context.WithCancel(t.Context())
		err = postgres.SQLTx(ctx, tx, func(as *sql.Tx) error {
			if _, err := as.Exec(`UPDATE account SET balance = balance + $1`, 5); err != nil {
				return err
			}
			cancel() // ends the statements that have ctx, and not the transaction
			if err := as.Commit(); err == nil {
				return errors.New("Commit was let through")
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Error(err)
		}
		if err := deposit(t.Context(), tx, 1); err != nil {
			t.Fatal(err)
		}
		before := d.Balance(t)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := d.Balance(t); after != before+6 {
			t.Errorf("the balance is %d, was %d", after, before)
		}
	})
}

// What database/sql scans is what it scans with pgx's own driver.
func TestSQLTxReadsWhatStdlibReads(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		const query = `SELECT 1::int2, 2::int4, 3::int8, 1.5::float4, 2.5::float8, true, 'text', 'c'::varchar,
			'\x00ff'::bytea, '{"a": 1}'::jsonb, '[2]'::json, '<a/>'::xml, 7::oid, '2026-11-22'::date,
			'2026-11-22 10:11:12.131415'::timestamp, '2026-11-22 10:11:12.131415+02'::timestamptz,
			'-infinity'::timestamptz, 12.50::numeric, '{1,2}'::int[], '1 day'::interval,
			'7b7dd9b2-35f7-4f33-9a2e-b3d0f1b6f0aa'::uuid, NULL::text, $1::text
			FROM generate_series(1, $2)`
		pool := newPool(t, d, 4, pgx.QueryExecModeCacheStatement)
		db := stdlib.OpenDBFromPool(pool)
		defer db.Close()
		theirs, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		want := scan(t, theirs, query)
		_ = theirs.Rollback()
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		if err := postgres.SQLTx(t.Context(), tx, func(as *sql.Tx) error {
			if got := scan(t, as, query); len(want) != 2 || !slices.Equal(got, want) {
				t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// scan returns each row in Go's syntax.
func scan(t *testing.T, tx *sql.Tx, query string) (list []string) {
	t.Helper()
	rows, err := tx.QueryContext(t.Context(), query, "argument", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, into := make([]any, len(names)), make([]any, len(names))
		for n := range values {
			into[n] = &values[n]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%q %#v", names, values))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}
