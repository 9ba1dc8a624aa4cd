package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/schema"
)

// The tables can be in a schema of their own. The SQL is for a migration tool of yours.
func ExampleNew() {
	up, _, err := schema.SQL(postgres.New(dialect.Schema("locks")))
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(up) {
		if strings.HasPrefix(line, "CREATE TABLE") {
			fmt.Print(line)
		}
	}
	// Output:
	// CREATE TABLE "locks"."rowlock" (
	// CREATE TABLE "locks"."rowlock_floor" (
	// CREATE TABLE "locks"."rowlock_queue" (
	// CREATE TABLE "locks"."rowlock_hold" (
	// CREATE TABLE "locks"."rowlock_once" (
	// CREATE TABLE "locks"."rowlock_meta" (
}

// An application that has a pgxpool gives rowlock a pool of database/sql on it, and fences its own
// pgx transactions.
func ExampleFence() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	locks, err := rowlock.Open(db, postgres.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "invoice/42", func(ctx context.Context, l *rowlock.Lock) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := postgres.Fence(ctx, tx, l); err != nil {
				return err // BeginFunc rolls back
			}
			_, err := tx.Exec(ctx, `UPDATE invoice SET paid = true WHERE id = 42`)
			return err
		})
	})
	if err != nil {
		log.Fatal(err)
	}
}

// Behind PgBouncer in transaction mode, the pool's DSN says default_query_exec_mode=exec, and
// Listen names a way to the server that goes past the pooler. Without Listen, waiters poll.
func ExamplePooled() {
	db, err := sql.Open("pgx", "postgres://app@pooler:6432/app?default_query_exec_mode=exec")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	d := postgres.New(postgres.Pooled(), postgres.Listen("postgres://app@server:5432/app"))
	locks, err := rowlock.Open(db, d, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
