package transition

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// sessions is a lock of a database that ends with its session.
type sessions struct {
	db  *sql.DB
	arg func(key string) any
	// Each returns whether it is so; wait may return that it has waited in vain.
	try, wait, unlock, held string
}

// Advisory is pg_advisory_lock on what id returns. See the package about pg_advisory_xact_lock.
func Advisory(db *sql.DB, id func(key string) int64) OldLock {
	return unless(db == nil || id == nil, "Advisory", &sessions{
		db: db, arg: func(key string) any { return id(key) },
		try: "SELECT pg_try_advisory_lock($1)", unlock: "SELECT pg_advisory_unlock($1)",
		wait: "SELECT pg_advisory_lock($1) IS NOT NULL", // it returns void
		held: `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid::bigint << 32 | objid::bigint = $1)`,
	})
}

// GetLock is GET_LOCK of MySQL and MariaDB on what name returns.
func GetLock(db *sql.DB, name func(key string) string) OldLock {
	return unless(db == nil || name == nil, "GetLock", &sessions{
		db: db, arg: func(key string) any { return name(key) },
		try: "SELECT coalesce(GET_LOCK(?, 0), 0)", wait: "SELECT coalesce(GET_LOCK(?, 10), 0)",
		unlock: "SELECT coalesce(RELEASE_LOCK(?), 0)", held: "SELECT IS_USED_LOCK(?) IS NOT NULL",
	})
}

func (s *sessions) HeldAlone(ctx context.Context, key string) (yes bool, err error) {
	err = s.db.QueryRowContext(ctx, s.held, s.arg(key)).Scan(&yes)
	return yes, err
}

func (s *sessions) Lock(ctx context.Context, key string, wait bool) (OldHeld, error) {
	arg := s.arg(key) // the application's function may panic
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	h := &session{s, conn, arg}
	got, err := h.ask(ctx, s.try)
	for err == nil && !got && wait {
		got, err = h.ask(ctx, s.wait)
	}
	switch {
	case err != nil: // whether the lock was taken is not known: its session ends
		h.end()
		return nil, err
	case !got:
		_ = conn.Close()
		return nil, fmt.Errorf("%w: the old lock on %q", lease.ErrHeld, key)
	}
	return h, nil
}

// session holds a lock for as long as it lasts.
type session struct {
	of   *sessions
	conn *sql.Conn
	arg  any
}

func (h *session) ask(ctx context.Context, query string) (yes bool, err error) {
	err = h.conn.QueryRowContext(ctx, query, h.arg).Scan(&yes)
	return yes, err
}

func (h *session) Check(ctx context.Context) error { return h.conn.PingContext(ctx) }

func (h *session) Unlock(ctx context.Context) error {
	was, err := h.ask(ctx, h.of.unlock)
	if err == nil && was {
		return h.conn.Close()
	}
	h.end() // or a pooled connection would keep it
	if err == nil {
		err = lease.ErrLost
	}
	return err
}

// end ends the session, whatever it holds.
func (h *session) end() {
	_ = h.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = h.conn.Close()
}
