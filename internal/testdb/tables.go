package testdb

import (
	"context"
	"database/sql"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/schema"
)

// makeTables runs the statements that schema.Migrate would run, until the test ends, in one
// transaction of fewer round trips. The tests of schema show that both ways make the same tables.
func (e *Env) makeTables(tb testing.TB) {
	tb.Helper()
	up, _, err := schema.SQL(e.Dialect)
	if err == nil {
		err = e.script(up)
	}
	if err != nil {
		tb.Fatal(err)
	}
	if e.Name == "sqlite" {
		return // the file goes with the test
	}
	tb.Cleanup(func() {
		if err := e.script(dropsOf(up)); err != nil {
			tb.Error(err)
		}
	})
}

// script runs statements in one transaction, where the database has transactions of DDL.
func (e *Env) script(statements string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	conn, err := e.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if e.Driver != "mysql" {
		return inOne(ctx, conn, statements)
	}
	for s := range strings.SplitSeq(strings.TrimSpace(statements), ";\n") {
		if _, err := conn.ExecContext(ctx, strings.TrimSuffix(s, ";")); err != nil {
			return err
		}
	}
	return nil
}

func inOne(ctx context.Context, conn *sql.Conn, statements string) error {
	_, err := conn.ExecContext(ctx, "BEGIN;\n"+statements+"\nCOMMIT;")
	if err != nil {
		_, _ = conn.ExecContext(ctx, "ROLLBACK")
	}
	return err
}

// created is the name of a table that up creates.
var created = regexp.MustCompile("(?m)^CREATE TABLE (?:IF NOT EXISTS )?([\"`]\\w+[\"`])")

// dropsOf drops the tables that up creates, in one statement. What goes down in an application would
// refuse to drop some, and so fill the catalogs of a server that thousands of tests use.
func dropsOf(up string) string {
	var tables []string
	for _, m := range created.FindAllStringSubmatch(up, -1) {
		tables = append(tables, m[1])
	}
	return "DROP TABLE IF EXISTS " + strings.Join(tables, ", ") + ";\n"
}
