package console_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// asked is a console that is told of every statement.
func asked(t *testing.T, e *testdb.Env, every time.Duration) (*bed, *faultdb.Log) {
	t.Helper()
	log := new(faultdb.Log)
	db, err := faultdb.Open(e.Driver, e.Source, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := newBed(t, e, func(o *console.Options) { o.DB, o.Every = db, every })
	b.lock("k")
	b.Expire(b, "k")
	return b, log
}

// lockRow has a transaction that is not rowlock's lock a key's row.
func (b *bed) lockRow(key string) {
	b.Helper()
	tx, err := b.DB.BeginTx(b.Context(), nil)
	if err == nil {
		b.Cleanup(func() { _ = tx.Rollback() })
		_, err = tx.Exec(b.SQL(`UPDATE {rowlock} SET note = 'x' WHERE {key} = ?`), []byte(key))
	}
	if err != nil {
		b.Fatal(err)
	}
}

func TestAnExpiredKeySaysWhatHasItsRow(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		b, log := asked(t, e, 10*time.Millisecond)
		if e.Name == "sqlite" {
			b.wants("key?k=k", "ago: free, unless a transaction still has its row locked")
			return
		}
		costs := func(most int, text string) {
			t.Helper()
			for log.Reset(); len(log.Queries()) == 0; { // or what was read just before is shown
				b.get("key?k=k")
			}
			n := len(log.Queries())
			if t.Logf("%q takes %d statements", text, n); n > most {
				t.Errorf("want %d at most", most)
			}
			b.becomes("key?k=k", text)
		}
		costs(61, "ago: free for the next caller") // with new connections, as it counts them
		costs(11, "ago: free for the next caller")
		b.lockRow("k")
		costs(22, "release --prefix "+b.Dialect.Names().Prefix+" &#39;k&#39; --force --evict")
		b.wants("key?k=k", "its row is still locked by session ", "(client ")
	})
}

func TestAnExpiredKeyOfANamespaceIsAskedForByItsWholeName(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("SQLite does not say what has a row locked")
		}
		b := newBed(t, e, nil)
		ns, err := b.client.Namespace("team", rowlock.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := ns.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		b.keep(l)
		whole := ns.KeyPrefix() + "k"
		b.Expire(b, whole)
		b.serve(ns, nil)
		b.wants("key?k=k", "ago: free for the next caller")
		b.lockRow(whole)
		b.becomes("key?k=k", "release --prefix "+b.Dialect.Names().Prefix+" &#39;"+whole+"&#39; --force")
	})
}
