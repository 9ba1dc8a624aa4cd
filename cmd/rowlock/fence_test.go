package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// statements are what fence prints for a script under run.
func (b *bed) statements(key string) (statements []string) {
	b.Helper()
	out := b.wants(0, "", "run", key, "--min-hold", "1h", "--ttl", "1h", "--", "sh", "-c",
		`exec "$0" fence -o json`, binary)
	var printed struct{ Statements []string }
	if err := json.Unmarshal([]byte(out), &printed); err != nil {
		b.Fatal(err)
	}
	return printed.Statements
}

func TestAFencePassesUntilAnotherOwnerHasHadTheKey(t *testing.T) {
	each(t, func(b *bed) {
		b.Exec(b.T, `CREATE TABLE `+b.Table("account")+` (balance INTEGER)`)
		b.Cleanup(func() { b.Exec(b.T, `DROP TABLE `+b.Table("account")) })
		statements := b.statements(`it's \xff`)
		if err := b.write(statements); err != nil {
			b.Errorf("the holder is refused: %v", err)
		}
		b.Exec(b.T, `UPDATE {rowlock} SET token = token + 1`)
		if err := b.write(statements); err == nil {
			b.Error("a holder of before is not refused")
		}
		b.Exec(b.T, `DELETE FROM {rowlock}`)
		if err := b.write(statements); err == nil {
			b.Error("without a row a holder of before is not refused")
		}
		var n int
		if err := b.DB.QueryRowContext(b.Context(), `SELECT count(*) FROM `+b.Table("account")).Scan(&n); err != nil || n != 1 {
			b.Errorf("%d writes, want 1 (%v)", n, err)
		}
	})
}

// write is what a script does.
func (b *bed) write(fence []string) error {
	b.Helper()
	tx, err := b.DB.BeginTx(b.Context(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, s := range append(fence, `INSERT INTO `+b.Table("account")+` VALUES (1)`) {
		rows, err := tx.QueryContext(b.Context(), s)
		if err != nil {
			return err
		}
		for rows.Next() {
			var state string
			if err := rows.Scan(&state); err != nil || !strings.Contains(state, "held") {
				b.Errorf("a fence returns %q (%v)", state, err)
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// While a fenced transaction is open, no other owner is granted the key, also if the lease is over.
func TestAFenceKeepsTheKeyUntilTheTransactionEnds(t *testing.T) {
	each(t, func(b *bed) {
		if b.Driver == "sqlite" {
			return // the transaction has the file
		}
		statements := b.statements("k")
		b.Exec(b.T, `UPDATE {rowlock} SET expires_at = {now} - {second}`)
		tx, err := b.DB.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		for _, s := range statements {
			if _, err := tx.ExecContext(b.Context(), s); err != nil {
				b.Fatal(err)
			}
		}
		b.wants(120, "is held", "run", "k", "--wait", "0", "--", "true")
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
		b.wants(0, "", "run", "k", "--wait", "10s", "--", "true")
	})
}
