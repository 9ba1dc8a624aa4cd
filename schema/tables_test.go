package schema_test

import (
	"bytes"
	"context"
	"database/sql"
	"math"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
)

// insert adds a row the way a store does, in the session's own idea of time.
func insert(s server, db *sql.DB, key, owner any, token lease.Token) error {
	query := map[string]string{
		"postgres": "INSERT INTO rowlock (key, owner, token, acquired_at, expires_at) VALUES ($1, $2, $3, now(), now())",
		"mysql":    "INSERT INTO rowlock (`key`, owner, token, acquired_at, expires_at) VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
		"mariadb":  "INSERT INTO rowlock (`key`, owner, token, acquired_at, expires_at) VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
		"sqlite":   "INSERT INTO rowlock (key, owner, token, acquired_at, expires_at) VALUES (?, ?, ?, 0, 0)",
	}[s.name]
	_, err := db.ExecContext(context.Background(), query, key, owner, token)
	return err
}

// queueColumns differ in order: SQLite wants the number it counts to be the primary key.
var queueColumns = map[string][]string{
	"postgres": {"key", "waiter", "ticket", "rank", "note", "ttl", "alive_until"},
	"mysql":    {"key", "waiter", "ticket", "rank", "note", "ttl", "alive_until"},
	"mariadb":  {"key", "waiter", "ticket", "rank", "note", "ttl", "alive_until"},
	"sqlite":   {"ticket", "key", "waiter", "rank", "note", "ttl", "alive_until"},
}

// marks are what a fence leaves where a trigger could not see otherwise that it was there.
var marks = map[string][]string{
	"mysql":   {"fenced_by", "fenced_token"},
	"mariadb": {"fenced_by", "fenced_token"},
}

func TestColumns(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		for table, want := range map[string][]string{
			"rowlock":        append([]string{"key", "owner", "note", "token", "acquired_at", "expires_at", "placement"}, marks[s.name]...),
			"rowlock_floor":  {"bucket", "floor"},
			"rowlock_meta":   {"name", "value", "start", "since"},
			"rowlock_queue":  queueColumns[s.name],
			"rowlock_hold":   {"key", "made_at"},
			"rowlock_wait":   {"caller", "key", "token", "awaits", "process", "note", "since", "alive_until"},
			"rowlock_member": {"key", "reader_group", "owner", "note", "joined_at", "expires_at"},
			"rowlock_latch": {
				"kind", "key", "id", "generation", "parties", "state", "ended", "made_at", "expires_at",
			},
			"rowlock_forced": {
				"key", "at", "id", "actor", "reason", "asked", "owner", "token", "note", "raised",
			},
			"rowlock_trace": {
				"at", "id", "key", "event", "token", "owner", "note", "number", "detail",
			},
			"rowlock_limit": {"name", "slots", "peak", "generation"},
			"rowlock_party": {"id", "phase", "party", "counted_at", "alive_until"},

			"rowlock_once": {"tenant", "key", "fingerprint", "result", "made_at", "expires_at"},
		} {
			rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table+" LIMIT 0")
			if err != nil {
				t.Fatal(err)
			}
			got, err := rows.Columns()
			if err != nil {
				t.Fatal(err)
			}
			rows.Close()
			equal(t, table, got, want)
		}
	})
}

func TestRowsThatFit(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		owner := bytes.Repeat([]byte{0xff}, 16)
		keys := []string{"A", "a", "a ", "á", "\x00", "a\x00", "\xff\xfe", string(bytes.Repeat([]byte{0}, 255))}
		for _, key := range keys {
			if err := insert(s, db, []byte(key), owner, math.MaxInt64); err != nil {
				t.Errorf("%q: %v", key, err)
			}
		}
		if err := insert(s, db, []byte("free"), nil, 0); err != nil {
			t.Errorf("without an owner: %v", err)
		}
		if n := one[int](t, db, "SELECT COUNT(*) FROM rowlock WHERE note = '' AND placement = 0"); n != len(keys)+1 {
			t.Errorf("%d rows of %d", n, len(keys)+1)
		}
	})
}

// A CHECK would cost each lock a part of its time. What it would refuse is refused where a row is
// read: see package servertest/corrupt.
func TestTheTableOfLocksRefusesNULLAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		owner := bytes.Repeat([]byte{1}, 16)
		if insert(s, db, nil, owner, 1) == nil {
			t.Error("a row without a key is taken")
		}
		if err := insert(s, db, []byte("k"), owner, -1); err != nil {
			t.Errorf("a token below 0, which a CHECK would refuse: %v", err)
		}
	})
}

// SQLite would make a floating-point number of it, and every later token the same.
func TestTokenDoesNotOverflow(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		if err := insert(s, db, []byte("k"), nil, math.MaxInt64); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "UPDATE rowlock SET token = token + 1"); err == nil {
			t.Error("no error")
		}
		if token := one[int64](t, db, "SELECT token FROM rowlock"); token != math.MaxInt64 {
			t.Errorf("the token is %d", token)
		}
	})
}

// A renewal of everything in one statement stays within the pages, and there is no index for it to
// write.
func TestRenewalIsHOT(t *testing.T) {
	on(t, onPostgres, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		exec(t, db, `INSERT INTO rowlock (key, owner, note, token, acquired_at, expires_at)
			SELECT decode(md5(n::text), 'hex'), decode(md5(n::text), 'hex'), 'a note', n, now(), now() FROM generate_series(1, 500) AS n`)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE rowlock SET expires_at = clock_timestamp()"); err != nil {
			t.Fatal(err)
		}
		var hot int
		err = tx.QueryRowContext(t.Context(), "SELECT pg_stat_get_xact_tuples_hot_updated('rowlock'::regclass)").Scan(&hot)
		if err != nil || hot < 490 {
			t.Errorf("%d of 500 updates were HOT (%v)", hot, err)
		}
	})
}
