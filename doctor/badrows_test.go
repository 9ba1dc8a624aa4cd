package doctor_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/doctor"
)

// Rows that another hand has written are valid for the database and for no statement of rowlock.
func TestRowsThatRowlockDoesNotWriteAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		s.wants(doctor.OK, "bad-rows")
		id := []byte("0123456789abcdef")
		far := map[string]string{"pgx": "'2200-01-01'", "mysql": "'2200-01-01'", "sqlite": "7258118400000"}[s.Env.Driver]
		bad := map[string]string{"pgx": "'infinity'", "mysql": "'0000-00-00'", "sqlite": "9223372036854775807"}[s.Env.Driver]
		s.loosely(`INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at) VALUES (?, 1, {now}, `+bad+`)`, []byte("k"))
		s.wants(doctor.Critical, "bad-rows", "k = expires_at", "1 rows of ", "release KEY --force")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock}`)
		s.loosely(`INSERT INTO {rowlock_queue} ({key}, waiter, alive_until) VALUES (?, ?, `+far+`)`, []byte("q"), id)
		s.wants(doctor.Warning, "bad-rows", "q = alive_until is far", "rowlock_queue", "keeps its key from all")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_queue}`)
		s.loosely(`INSERT INTO {rowlock_member} ({key}, reader_group, owner, joined_at, expires_at) VALUES (?, ?, ?, {now}, `+bad+`)`,
			[]byte("m"), id, id)
		s.wants(doctor.Warning, "bad-rows", "m = expires_at", "rowlock_member")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_member}`)
		s.loosely(`INSERT INTO {rowlock_limit} (name, slots, peak, generation) VALUES (?, 3, 2, 1)`, []byte("l"))
		s.wants(doctor.Critical, "bad-rows", "l = peak", "rowlock_limit")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_limit}`)
		s.loosely(`INSERT INTO {rowlock_once} (tenant, {key}, fingerprint, made_at, expires_at) VALUES (?, ?, ?, {now}, `+bad+`)`,
			[]byte(""), []byte("o"), []byte(""))
		s.wants(doctor.Warning, "bad-rows", "o = expires_at", "rowlock_once")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_once}`)
		s.loosely(`INSERT INTO {rowlock_latch} (kind, {key}, id, generation, parties, state, made_at, expires_at)
			VALUES (0, ?, ?, 1, 1, 9, {now}, {now})`, []byte("b"), id)
		s.wants(doctor.Warning, "bad-rows", "b = state", "rowlock_latch")
		s.Exec(s.Env.DB, `DELETE FROM {rowlock_latch}`)
		s.loosely(`UPDATE {rowlock_floor} SET floor = -1 WHERE bucket = 7`)
		s.wants(doctor.Critical, "bad-rows", "7 = floor", "rowlock_floor")
	})
}

// A lease lasts for the TTL of its client, and so does the ticket of one that is Fair.
func TestALongTTLMakesNoBadRows(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		c, err := rowlock.Open(s.Env.DB, s.Env.Dialect, &rowlock.Config{TTL: 11 * 365 * 24 * time.Hour})
		s.OK(err)
		defer c.Close()
		l, err := c.Lock(s.Context(), "k")
		s.OK(err)
		defer l.Unlock(s.Context())
		id := []byte("0123456789abcdef")
		s.loosely(`INSERT INTO {rowlock_queue} ({key}, waiter, alive_until) SELECT {key}, ?, expires_at FROM {rowlock}`, id)
		s.loosely(`INSERT INTO {rowlock_wait} (caller, {key}, token, process, since, alive_until)
			SELECT ?, {key}, token, 1, {now}, expires_at FROM {rowlock}`, id)
		s.loosely(`INSERT INTO {rowlock_member} ({key}, reader_group, owner, joined_at, expires_at)
			SELECT {key}, owner, owner, {now}, expires_at FROM {rowlock}`)
		s.wants(doctor.OK, "bad-rows")
	})
}

// loosely runs a statement in a session that takes any date.
func (s scene) loosely(query string, args ...any) {
	s.Helper()
	conn, err := s.Env.Pool(s).Conn(s.Context())
	s.OK(err)
	defer conn.Close()
	if s.Env.Driver == "mysql" {
		_, err := conn.ExecContext(context.Background(), `SET SESSION sql_mode = ''`)
		s.OK(err)
	}
	_, err = conn.ExecContext(s.Context(), s.Env.SQL(query), args...)
	s.OK(err)
}
