package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Evictor is a Dialect that can find the session that has the row of an expired key locked, and end it.
type Evictor interface {
	// AwaitRow waits for the row of an expired key, no longer than the session waits for any row. It calls waiting with the server's id
	// of s before: while it waits, the server knows for whom.
	AwaitRow(ctx context.Context, s *Session, key string, waiting func(session int64)) error
	// EndBlockers returns the sessions by whose transactions waiter has to wait for the row of key, if that is still expired, and ends
	// those that are the same user's and whose transactions are at least that old. It ends no session for anything but that row.
	EndBlockers(ctx context.Context, s *Session, key string, waiter int64, least time.Duration) ([]Blocker, error)
	// MayEvict returns the statement that gives this user the rights that EndBlockers takes, or "" if it has them.
	MayEvict(ctx context.Context, conn *sql.Conn) (grant string, err error)
}

// Blocker is a session that has a row locked.
type Blocker struct {
	ID    int64
	User  string
	Own   bool // of the user who asks
	Old   bool // its transaction is as old as was asked for
	Ended bool
}

// AwaitRow is [Evictor.AwaitRow] with the sections session-id and await-expired.
func AwaitRow(ctx context.Context, s *Session, d Dialect, key string, waiting func(session int64)) error {
	return s.InTx(ctx, func() error {
		var id, one int64
		if err := s.QueryRow(ctx, d.Text("session-id"), nil, &id); err != nil {
			return err
		}
		waiting(id)
		err := s.QueryRow(ctx, d.Text("await-expired"), []any{[]byte(key)}, &one)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
}

// Blockers runs a section that returns blockers, each with 1 for yes: id, user, own, old, ended.
func Blockers(ctx context.Context, s *Session, query string, args []any) (out []Blocker, err error) {
	err = s.Query(ctx, query, args, func(row Columns) error {
		var b Blocker
		err := row.Scan(&b.ID, &b.User, &b.Own, &b.Old, &b.Ended)
		out = append(out, b)
		return err
	})
	return out, err
}
