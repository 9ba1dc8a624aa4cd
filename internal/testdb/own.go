package testdb

import (
	"fmt"
	"net/url"
	"os"
	"testing"
)

// InOwnDatabase is Open on postgres in a database that goes with the test. What a test sets in the
// sessions that PgBouncer shares, it sets in those of this database alone: a search_path or a timeout
// that stays would make other tests fail.
func InOwnDatabase(tb testing.TB) *Env {
	tb.Helper()
	kind := Kinds[1]
	admin := &Env{Kind: kind, Source: kind.DSN(tb), Dialect: kind.New()}
	admin.DB = admin.Pool(tb)
	name := fmt.Sprintf("own_%d_%d", os.Getpid(), serial.Add(1))
	admin.Exec(tb, `CREATE DATABASE `+name)
	tb.Cleanup(func() { admin.Exec(tb, `DROP DATABASE `+name+` WITH (FORCE)`) })
	return kind.At(tb, InDatabase(tb, admin.Source, name))
}

// InDatabase returns a URL of postgres that leads to the database of this name.
func InDatabase(tb testing.TB, source, name string) string {
	tb.Helper()
	return parsed(tb, source).JoinPath("..", name).String()
}

func parsed(tb testing.TB, source string) *url.URL {
	tb.Helper()
	u, err := url.Parse(source)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}
