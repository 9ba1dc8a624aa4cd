package testdb

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"testing"
)

// InOwnDatabase is Open on postgres in a database that goes with the test. What a test sets in the
// sessions that PgBouncer shares, it sets in those of this database alone: a search_path or a timeout
// that stays would make other tests fail.
func InOwnDatabase(tb testing.TB) *Env {
	tb.Helper()
	return Kinds[1].At(tb, OwnDatabase(tb))
}

// OwnDatabase returns the URL of an empty database on postgres that goes with the test.
func OwnDatabase(tb testing.TB) string {
	tb.Helper()
	kind := Kinds[1]
	admin := &Env{Kind: kind, Source: kind.DSN(tb), Dialect: kind.New()}
	admin.DB = admin.Pool(tb)
	name := fmt.Sprintf("own_%d_%d", os.Getpid(), serial.Add(1))
	admin.Exec(tb, `CREATE DATABASE `+name)
	tb.Cleanup(func() { admin.Exec(tb, `DROP DATABASE `+name+` WITH (FORCE)`) })
	return parsed(tb, admin.Source).JoinPath("..", name).String()
}

// ThroughPgBouncer returns the URL of the database at source, postgres', by way of PgBouncer.
func ThroughPgBouncer(tb testing.TB, source string) string {
	tb.Helper()
	name := path.Base(parsed(tb, source).Path)
	return parsed(tb, PgBouncer.DSN(tb)).JoinPath("..", name).String()
}

func parsed(tb testing.TB, source string) *url.URL {
	tb.Helper()
	u, err := url.Parse(source)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}
