package main

import (
	"strings"
	"testing"
)

// show asks the server whether an expired key is locked, as by a stopped process.
func TestAnExpiredKeyIsCalledFreeIfNoTransactionHasIt(t *testing.T) {
	each(t, func(b *bed) {
		b.wants(0, "", "run", "k", "--min-hold", "1h", "--ttl", "1h", "--", "true")
		b.Expire(b.T, "k")
		says := func(want string) {
			if out := b.wants(0, "", "show", "k"); !strings.Contains(out, want) {
				b.Errorf("show lacks %q: %s", want, out)
			}
		}
		if b.Kind.Name == "sqlite" { // does not tell
			says("ago: free, unless a transaction still has its row locked")
			return
		}
		says("ago: free for the next caller")
		tx, err := b.DB.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(b.Context(), b.SQL(`UPDATE {rowlock} SET note = 'x' WHERE {key} = ?`), []byte("k")); err != nil {
			b.Fatal(err)
		}
		says("its row is still locked by session ")
		says("rowlock release --prefix " + b.Dialect.Names().Prefix + " 'k' --force --evict --reason TEXT")
		if _, err := tx.ExecContext(b.Context(), b.SQL(`UPDATE {rowlock} SET note = 'y' WHERE {key} = ?`), []byte("k")); err != nil {
			b.Errorf("the transaction was ended: %v", err)
		}
	})
}
