package rowlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"

	_ "modernc.org/sqlite"
)

// open makes a database with rowlock's tables and a client on it.
func open() (db *sql.DB, locks *rowlock.Client, done func()) {
	dir, err := os.MkdirTemp("", "rowlock")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		log.Fatal(err)
	}
	if err := schema.Migrate(context.Background(), db, sqlite.New()); err != nil {
		log.Fatal(err)
	}
	locks, err = rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	return db, locks, func() {
		_ = locks.Close()
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

func ExampleClient_Do() {
	db, locks, done := open()
	defer done()

	err := locks.Do(context.Background(), "invoice/42", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		fmt.Println("writing under a token:", l.Token() > 0) // the first is not always 1
		return tx.Commit()
	})
	fmt.Println(err)
	// Output:
	// writing under a token: true
	// <nil>
}

func ExampleClient_TryLock() {
	_, locks, done := open()
	defer done()
	ctx := context.Background()

	l, err := locks.TryLock(ctx, "report", rowlock.Note("nightly-report on web-3"), rowlock.TTL(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(ctx)

	_, err = locks.TryLock(ctx, "report")
	var held *rowlock.HeldError
	if errors.As(err, &held) {
		fmt.Printf("held by %s for %s more\n", held.Note, held.Remaining.Round(time.Minute))
	}
	// Output:
	// held by nightly-report on web-3 for 1m0s more
}

func ExampleClient_LockAll() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER);
		INSERT INTO account VALUES ('alice', 100), ('bob', 0)`); err != nil {
		log.Fatal(err)
	}

	transfer := func(from, to string, amount int) error {
		both, err := locks.LockAll(ctx, []string{"account/" + from, "account/" + to})
		if err != nil {
			return err
		}
		defer both.Unlock(ctx)
		tx, err := db.BeginTx(both.Context(), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := both.Fence(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance + CASE name WHEN ? THEN ? ELSE ? END WHERE name IN (?, ?)`,
			to, amount, -amount, from, to); err != nil {
			return err
		}
		return tx.Commit()
	}
	fmt.Println(transfer("alice", "bob", 30), transfer("bob", "alice", 10))

	var alice, bob int
	if err := db.QueryRowContext(ctx, `SELECT a.balance, b.balance FROM account a, account b WHERE a.name < b.name`).Scan(&alice, &bob); err != nil {
		log.Fatal(err)
	}
	fmt.Println("alice has", alice, "and bob", bob)
	// Output:
	// <nil> <nil>
	// alice has 80 and bob 20
}

func ExampleOnWait() {
	_, locks, done := open()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()

	nightly, err := locks.Lock(ctx, "report", rowlock.Note("nightly-report on web-3"))
	if err != nil {
		log.Fatal(err)
	}
	defer nightly.Unlock(ctx)

	l, err := locks.Lock(ctx, "report", rowlock.OnWait(func(w rowlock.Waiting) {
		fmt.Printf("waiting behind %s, %d ahead of you\n", w.Holder, w.Ahead)
	}))
	fmt.Println(l, errors.Is(err, rowlock.ErrHeld))
	// Output:
	// waiting behind nightly-report on web-3, 0 ahead of you
	// <nil> true
}

func ExampleLock_UnlockTx() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()

	l, err := locks.Lock(ctx, "order/7")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(ctx)

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	// … write the order …
	if err := l.UnlockTx(ctx, tx); err != nil { // checks what Fence checks
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil { // now the order is there, and the lock is free
		log.Fatal(err)
	}
	again, err := locks.TryLock(ctx, "order/7")
	fmt.Println(again.Token() > l.Token(), err)
	// Output:
	// true <nil>
}

func ExampleLock_Context() {
	_, locks, done := open()
	defer done()

	l, err := locks.Lock(context.Background(), "leader", rowlock.MaxHold(100*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	<-l.Context().Done() // give this context to whatever must stop with the lock
	fmt.Println(context.Cause(l.Context()))
	// Output:
	// rowlock: held for the longest time allowed
}

func Example_schemaForOtherTools() {
	d := postgres.New(dialect.Prefix("billing_"), dialect.Schema("locks"))
	up, down, err := schema.SQL(d)
	if err != nil {
		log.Fatal(err)
	}
	_ = os.WriteFile(filepath.Join(os.TempDir(), "0007_rowlock.up.sql"), []byte(up), 0o600)
	_ = os.WriteFile(filepath.Join(os.TempDir(), "0007_rowlock.down.sql"), []byte(down), 0o600)
}

// The calls that the documentation lists, for the compiler.
func Example_calls() {
	db, locks, done := open()
	defer done()
	ctx := context.Background()
	wait := func() {
		l, err := locks.Lock(ctx, "invoice/42")
		fmt.Println(l, err)
	}
	try := func(tx *sql.Tx) {
		l, err := locks.TryLock(ctx, "invoice/42")
		fmt.Println(err)
		defer l.Unlock(ctx)

		l.Token()
		l.Context()
		l.Fence(ctx, tx)
		l.UnlockTx(ctx, tx)
	}
	tx, _ := db.Begin()
	wait()
	try(tx)
}
