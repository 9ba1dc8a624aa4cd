package servertest

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// LeaseLeft is the rest of a key's lease by the database's clock, read on a pool of the test's own.
func LeaseLeft(tb testing.TB, e *testdb.Env, key string) time.Duration {
	tb.Helper()
	micros := map[string]string{
		"sqlite": `(expires_at - {now}) * 1000`,
		"pgx":    `(extract(epoch FROM expires_at - {now}) * 1000000)::bigint`,
		"mysql":  `TIMESTAMPDIFF(MICROSECOND, {now}, expires_at)`,
	}[e.Driver]
	var n int64
	if err := e.DB.QueryRowContext(context.Background(),
		e.SQL(`SELECT `+micros+` FROM {rowlock} WHERE {key} = ?`), []byte(key)).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(n) * time.Microsecond
}

// Fenced takes key, lets its lease expire in the store, and fences it: only the fence keeps
// another client from taking it. The lease expires first, because in SQLite no other connection
// can write to the row afterwards.
func (s *Scene) Fenced(c *rowlock.Client, key string, expired bool,
	opts *sql.TxOptions,
) (*rowlock.Lock, *sql.Tx) {
	s.Helper()
	l := s.Take(c, key)
	if expired {
		s.Env.Expire(s, key)
	}
	tx := s.Begin(s.Env.DB, opts)
	s.OK(l.Fence(s.Context(), tx))
	return l, tx
}

// Begin begins a transaction, which is rolled back at the end of the test.
func (s *Scene) Begin(db *sql.DB, opts *sql.TxOptions) *sql.Tx {
	s.Helper()
	tx, err := db.BeginTx(context.WithoutCancel(s.Context()), opts)
	s.OK(err)
	s.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Exec runs SQL as testdb.Env.Exec takes it.
func (s *Scene) Exec(db execer, query string, args ...any) {
	s.Helper()
	if _, err := db.ExecContext(s.Context(), s.Env.SQL(query), args...); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Number reads one integer.
func (s *Scene) Number(query string, args ...any) (n int64) {
	s.Helper()
	if err := s.Env.DB.QueryRowContext(s.Context(), s.Env.SQL(query), args...).Scan(&n); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return n
}

// Rows counts the keys that have a row, without those that rowlock keeps for itself.
func (s *Scene) Rows() int64 {
	s.Helper()
	return s.Number(`SELECT count(*) FROM {rowlock} WHERE {key} > ?`, []byte(lease.Reserved+"\xff"))
}

// Floor reads the floor of key's bucket.
func (s *Scene) Floor(key string) lease.Token {
	s.Helper()
	return lease.Token(s.Number(`SELECT floor FROM {rowlock_floor} WHERE bucket = ?`, lease.Bucket(key)))
}

// Ledger makes a table of the application's, with one row: id 1, n 0.
func (s *Scene) Ledger() (table string) {
	s.Helper()
	table = s.Env.Dialect.Names().Prefix + "ledger"
	s.Exec(s.Env.DB, `CREATE TABLE `+table+` (id INT PRIMARY KEY, n INT NOT NULL)`)
	s.Cleanup(func() { _, _ = s.Env.DB.Exec(`DROP TABLE ` + table) })
	s.Exec(s.Env.DB, `INSERT INTO `+table+` VALUES (1, 0)`)
	return table
}

// Partition makes the table of locks one of n partitions, each of which is a table of this kind.
func (s *Scene) Partition(n int, kind string) {
	s.Helper()
	prefix := s.Env.Dialect.Names().Prefix
	s.Exec(s.Env.DB, `ALTER TABLE {rowlock} RENAME TO `+prefix+`whole`)
	s.Exec(s.Env.DB, `CREATE TABLE {rowlock} (LIKE `+prefix+`whole INCLUDING ALL) PARTITION BY HASH (key)`)
	for i := range n {
		s.Exec(s.Env.DB, fmt.Sprintf(`CREATE %s %spart%d PARTITION OF {rowlock} FOR VALUES WITH (MODULUS %d, REMAINDER %d)`,
			kind, prefix, i, n, i))
	}
	s.Exec(s.Env.DB, `DROP TABLE `+prefix+`whole`)
}

// Session is a pinned connection in the test's hands.
func (s *Scene) Session(d *sqlstore.Dialect, pinned *sql.Conn) *conn.Session {
	s.Helper()
	session := conn.NewSession(pinned)
	s.Cleanup(session.Discard)
	s.OK(d.Setup(s.Context(), session))
	session.EraAt(0)
	return session
}

// Checks are the two calls inside the caller's transaction, which refuse alike.
var Checks = map[string]func(l *rowlock.Lock, ctx context.Context, tx rowlock.Tx) error{
	"Fence":    (*rowlock.Lock).Fence,
	"UnlockTx": (*rowlock.Lock).UnlockTx,
}

// Dial opens a pool, which is closed at the end of the test.
func (s *Scene) Dial(driver, dsn string) *sql.DB {
	s.Helper()
	db, err := sql.Open(driver, dsn)
	s.OK(err)
	s.Cleanup(func() { _ = db.Close() })
	return db
}
