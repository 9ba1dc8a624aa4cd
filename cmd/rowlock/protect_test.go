package main

import (
	"context"
	"strings"
	"testing"
)

func TestATableIsProtectedAndListed(t *testing.T) {
	each(t, func(b *bed) {
		b.wants(0, "", "--dsn", b.dsn, "migrate", "up")
		if b.Driver == "sqlite" {
			for _, args := range [][]string{{"protect", "account", "--key", "k"}, {"protect", "ls"}, {"unprotect", "account"}} {
				b.wants(7, "not supported", append([]string{"--dsn", b.dsn}, args...)...)
			}
			return
		}
		db, account := b.Pool(b.T), b.Dialect.Names().Prefix+"account"
		exec := func(statement string) error {
			if b.Driver == "mysql" {
				statement = strings.ReplaceAll(statement, `"`, "`")
			}
			_, err := db.ExecContext(b.Context(), statement)
			return err
		}
		if err := exec(`CREATE TABLE "` + account + `" (id int)`); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _, _ = db.ExecContext(context.Background(), `DROP TABLE `+account) })
		b.wants(2, "--key", "--dsn", b.dsn, "protect", account)
		b.wants(2, "no column", "--dsn", b.dsn, "protect", account, "--key", "account/{ID}")
		b.wants(0, "", "--dsn", b.dsn, "protect", account, "--key", "account/{id}", "--warn-only")
		if err := exec(`INSERT INTO "` + account + `" VALUES (7)`); err != nil {
			b.Fatal(err)
		}
		out := b.wants(0, "", "--dsn", b.dsn, "protect", "ls")
		if !strings.Contains(out, "account/{id}") || !strings.Contains(out, "counts") || b.Driver == "pgx" && !strings.Contains(out, "INSERT INTO") {
			b.Errorf("protect ls: %s", out)
		}
		b.wants(0, "", "--dsn", b.dsn, "protect", account, "--key", "account/{id}")
		if err := exec(`INSERT INTO "` + account + `" VALUES (7)`); err == nil {
			b.Error("the table is not protected")
		}
		if out := b.wants(0, "", "--dsn", b.dsn, "protect", "ls", "-o", "json"); !strings.Contains(out, `"state":"refuses"`) {
			b.Errorf("protect ls: %s", out)
		}
		b.wants(7, "Unprotect", "--dsn", b.dsn, "migrate", "down", "--yes")
		b.wants(0, "", "--dsn", b.dsn, "unprotect", account)
		b.wants(2, "not protected", "--dsn", b.dsn, "unprotect", account)
		up := b.wants(0, "", "--dsn", b.dsn, "protect", account, "--key", "k", "--sql")
		if !strings.Contains(up, "-- +goose Down") {
			b.Errorf("protect --sql: %s", up)
		}
	})
}
