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
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/once"
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
	// CREATE TABLE IF NOT EXISTS "locks"."rowlock_floor" (
	// CREATE TABLE "locks"."rowlock_queue" (
	// CREATE TABLE "locks"."rowlock_wait" (
	// CREATE TABLE "locks"."rowlock_forced" (
	// CREATE TABLE IF NOT EXISTS "locks"."rowlock_meta" (
	// CREATE TABLE "locks"."rowlock_member" (
	// CREATE TABLE "locks"."rowlock_limit" (
	// CREATE TABLE "locks"."rowlock_once" (
	// CREATE TABLE "locks"."rowlock_latch" (
	// CREATE TABLE "locks"."rowlock_party" (
	// CREATE TABLE "locks"."rowlock_hold" (
	// CREATE TABLE "locks"."rowlock_trace" (
}

// An application that has a pgxpool gives rowlock a part of it, and fences its own pgx
// transactions.
func ExampleFence() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // …?pool_max_conns=14
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	db, err := postgres.OpenPool(pool)
	if err != nil {
		log.Fatal(err)
	}
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

// The client, the *sql.DB and the pool are closed in this order: pool.Close waits for the
// connections that the client keeps.
func ExampleOpenPool() {
	pool, err := pgxpool.New(context.Background(), "postgres://app@server/app?pool_max_conns=14")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	db, err := postgres.OpenPool(pool)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	locks, err := rowlock.Open(db, postgres.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}

// once.In needs a *sql.Tx. What it does is part of the pgx.Tx.
func ExampleSQLTx() {
	ctx := context.Background()
	var pool *pgxpool.Pool  // yours
	var requests *once.Once // once.New on what OpenPool returned

	handle := func(key string) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return postgres.SQLTx(ctx, tx, func(in *sql.Tx) error {
				_, err := requests.In(ctx, in, once.Request{Key: key}, func(ctx context.Context, _ *sql.Tx) ([]byte, error) {
					_, err := tx.Exec(ctx, `UPDATE invoice SET paid = true WHERE id = 42`)
					return []byte("paid"), err
				})
				return err
			})
		})
	}
	_ = handle
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

// A pool that names both servers takes the one that takes writes. RequireSync refuses a primary
// whose commits wait for no standby, now and after each failover.
func ExampleNew_failover() {
	db, err := sql.Open("pgx", "postgres://app@db1:5432,db2:5432/app"+
		"?target_session_attrs=read-write&connect_timeout=3")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	locks, err := rowlock.Open(db, postgres.New(), &rowlock.Config{RequireSync: true})
	if err != nil {
		log.Fatal(err) // rowlock: no synchronous replica: …, with the cure
	}
	defer locks.Close()
}
