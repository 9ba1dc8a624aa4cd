// Package agents has the programs of AGENTS.md, which a coding assistant copies, and their tests.
package agents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func pay(ctx context.Context, locks *rowlock.Client, order int) error {
	key := fmt.Sprintf("order/%d", order)
	return locks.DoTx(ctx, key, func(ctx context.Context, tx *sql.Tx) error {
		var paid bool
		err := tx.QueryRowContext(ctx, `SELECT paid FROM orders WHERE id = ?`, order).Scan(&paid)
		if err != nil || paid { // paid: a repeated call does nothing
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE orders SET paid = true WHERE id = ?`, order)
		return err
	})
}

func transfer(ctx context.Context, locks *rowlock.Client, from, to, cents int) error {
	keys := []string{fmt.Sprintf("account/%d", from), fmt.Sprintf("account/%d", to)}
	return locks.DoAllTx(ctx, keys, func(ctx context.Context, tx *sql.Tx) error {
		const add = `UPDATE account SET cents = cents + ? WHERE id = ?`
		if _, err := tx.ExecContext(ctx, add, -cents, from); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, add, cents, to)
		return err
	})
}

func importAll(ctx context.Context, locks *rowlock.Client, lines []string) error {
	l, err := locks.Lock(ctx, "import") // waits; ctx bounds the wait
	if err != nil {
		return err
	}
	defer l.Unlock(ctx) // works with a canceled ctx too
	for _, line := range lines {
		err := l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO line VALUES (?)`, line)
			return err
		})
		if err != nil {
			return err // ErrFenced: another process has the key
		}
	}
	return nil
}

func hourly(ctx context.Context, locks *rowlock.Client, job func(context.Context) error) error {
	l, err := locks.TryLock(ctx, "hourly", rowlock.MinHold(50*time.Minute))
	if errors.Is(err, rowlock.ErrHeld) {
		return nil // another process runs it, or has run it
	}
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	if err := job(l.Context()); err != nil { // the context ends with the lock
		return errors.Join(err, l.UnlockNow(ctx)) // another process may try at once
	}
	return nil
}

func openTest(t *testing.T) (*sql.DB, *rowlock.Client) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "test.db"))
	if err == nil {
		err = schema.Migrate(t.Context(), db, sqlite.New())
	}
	if err != nil {
		t.Fatal(err)
	}
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(); _ = db.Close() })
	return db, locks
}

func TestTheProgramsDoTheirWorkOnce(t *testing.T) {
	db, locks := openTest(t)
	ctx := t.Context()
	_, err := db.ExecContext(ctx, `CREATE TABLE orders AS SELECT 7 AS id, false AS paid;
		CREATE TABLE account AS SELECT 1 AS id, 100 AS cents UNION SELECT 2, 0; CREATE TABLE line (text TEXT)`)
	runs := 0
	job := func(ctx context.Context) error { runs++; return ctx.Err() }
	err = errors.Join(err, pay(ctx, locks, 7), pay(ctx, locks, 7), transfer(ctx, locks, 1, 2, 30),
		importAll(ctx, locks, []string{"a", "b"}), hourly(ctx, locks, job), hourly(ctx, locks, job))
	if err != nil {
		t.Fatal(err)
	}
	var paid, cents, lines int
	err = db.QueryRowContext(ctx, `SELECT (SELECT sum(paid) FROM orders), (SELECT cents FROM account WHERE id = 2),
		(SELECT count(*) FROM line)`).Scan(&paid, &cents, &lines)
	if err != nil || paid != 1 || cents != 30 || lines != 2 || runs != 1 {
		t.Errorf("%d paid, %d cents, %d lines, %d runs (%v); want 1, 30, 2, 1", paid, cents, lines, runs, err)
	}
}

func TestAJobThatFailsMayBeTriedAtOnce(t *testing.T) {
	_, locks := openTest(t)
	full := errors.New("no disk space")
	for range 2 {
		if err := hourly(t.Context(), locks, func(context.Context) error { return full }); !errors.Is(err, full) {
			t.Errorf("hourly returned %v, want the job's error", err)
		}
	}
}
