package quorum_test

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
	"github.com/rowlockdb/rowlock/quorum"
	"github.com/rowlockdb/rowlock/schema"
)

// member opens a database that has nothing but locks. In production each is on another machine.
func member(dir, name string) (rowlock.Table, *sql.DB) {
	db, err := sqlite.Open(filepath.Join(dir, name))
	check(err)
	check(schema.Migrate(context.Background(), db, sqlite.New()))
	table, err := rowlock.OpenTable(db, sqlite.New(), nil)
	check(err)
	return table, db
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Three SQLite files vote. One of them is lost while a lock is held, and the lock goes on.
func Example() {
	dir, err := os.MkdirTemp("", "quorum")
	check(err)
	defer os.RemoveAll(dir)
	a, dbA := member(dir, "a.db")
	b, dbB := member(dir, "b.db")
	c, dbC := member(dir, "c.db")

	store, err := quorum.New(a, b, c)
	check(err)
	locks, err := rowlock.New(store, nil)
	check(err)

	ctx := context.Background()
	l, err := locks.Lock(ctx, "crane/7")
	check(err)
	first := l.Token()
	fmt.Println("the crane is ours under a token:", first > 0)

	check(b.Close()) // a member is gone
	check(dbB.Close())
	_, err = locks.TryLock(ctx, "crane/7")
	fmt.Println("another caller:", errors.Is(err, rowlock.ErrHeld))
	fmt.Println("still ours:", l.Context().Err() == nil)
	check(l.Unlock(ctx))

	l, err = locks.Lock(ctx, "crane/7")
	check(err)
	fmt.Println("again, with two of three members, under a larger token:", l.Token() > first)
	check(l.Unlock(ctx))

	check(locks.Close())
	check(store.Close())
	for _, end := range []func() error{a.Close, dbA.Close, c.Close, dbC.Close} {
		check(end())
	}
	// Output:
	// the crane is ours under a token: true
	// another caller: true
	// still ours: true
	// again, with two of three members, under a larger token: true
}
