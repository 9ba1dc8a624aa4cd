package sqlstore

import (
	"context"
	"database/sql"
	"errors"
)

// Blocker is a session that has a row locked.
type Blocker struct {
	ID    int64
	User  string
	Own   bool // of the user that asks
	Old   bool // its transaction is as old as was asked for
	Ended bool
}

// AwaitRow waits for the row of an expired key with the sections session-id and await-expired, no
// longer than the session waits for any row. It first calls waiting with the server's id of s:
// while it waits, the server shows what s waits for.
func AwaitRow(
	ctx context.Context, s *Session, d Texts, key string, waiting func(session int64),
) error {
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

// Blockers runs a section that returns blockers: id, user, own, old, ended. The last three are 1
// for true.
func Blockers(ctx context.Context, s *Session, query string, args []any) (
	out []Blocker, err error,
) {
	err = s.Query(ctx, query, args, func(row Columns) error {
		var b Blocker
		err := row.Scan(&b.ID, &b.User, &b.Own, &b.Old, &b.Ended)
		out = append(out, b)
		return err
	})
	return out, err
}
