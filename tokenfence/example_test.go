package tokenfence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
	"github.com/rowlockdb/rowlock/tokenfence"

	_ "modernc.org/sqlite"
)

// open makes two databases: one with the locks, and one with the data.
func open() (locks *rowlock.Client, data *sql.DB, done func()) {
	dir, err := os.MkdirTemp("", "tokenfence")
	if err != nil {
		log.Fatal(err)
	}
	file := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+
			"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
		if err != nil {
			log.Fatal(err)
		}
		return db
	}
	db, data := file("locks.db"), file("data.db")
	if err := schema.Migrate(context.Background(), db, sqlite.New()); err != nil {
		log.Fatal(err)
	}
	locks, err = rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	return locks, data, func() {
		_ = locks.Close()
		_ = db.Close()
		_ = data.Close()
		_ = os.RemoveAll(dir)
	}
}

// The lock is in one database and the report in another. A holder whose lock was taken over is
// refused by the database with the report.
func Example() {
	locks, data, done := open()
	defer done()
	ctx := context.Background()
	_, err := data.Exec(`CREATE TABLE report (
			id TEXT PRIMARY KEY, body TEXT NOT NULL, token BIGINT NOT NULL DEFAULT 0);
		INSERT INTO report (id, body) VALUES ('q3', '')`)
	if err != nil {
		log.Fatal(err)
	}
	at := tokenfence.Rows{Table: "report", Key: "id", Token: "token"}
	reports, err := tokenfence.New(sqlite.New(), at)
	if err != nil {
		log.Fatal(err)
	}
	write := func(l *rowlock.Lock, body string) error {
		tx, err := data.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := reports.Pass(ctx, tx, "q3", l.Token()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE report SET body = ? WHERE id = 'q3'`, body); err != nil {
			return err
		}
		return tx.Commit()
	}

	stalled, err := locks.Lock(ctx, "report/q3")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("first holder:", write(stalled, "draft"))
	_ = stalled.Unlock(ctx) // as if its lease had ended, unnoticed
	next, err := locks.Lock(ctx, "report/q3")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Unlock(ctx)
	fmt.Println("next holder:", write(next, "final"))
	fmt.Println("first holder is fenced:", errors.Is(write(stalled, "stale"), rowlock.ErrFenced))
	// Output:
	// first holder: <nil>
	// next holder: <nil>
	// first holder is fenced: true
}

// If data is made and deleted under the lock, the tokens have a table of their own.
func ExampleRows() {
	locks, data, done := open()
	defer done()
	ctx := context.Background()
	_, err := data.Exec(
		`CREATE TABLE lock_token (name VARCHAR(255) PRIMARY KEY, token BIGINT NOT NULL)`)
	if err != nil {
		log.Fatal(err)
	}
	at := tokenfence.Rows{Table: "lock_token", Key: "name", Token: "token", Create: true}
	tokens, err := tokenfence.New(sqlite.New(), at)
	if err != nil {
		log.Fatal(err)
	}

	err = locks.Do(ctx, "report/q3", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := data.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := tokens.Pass(ctx, tx, l.Key(), l.Token()); err != nil {
			return err
		}
		// … read, insert, delete what the lock protects …
		return tx.Commit()
	})
	fmt.Println(err)
	// Output:
	// <nil>
}
