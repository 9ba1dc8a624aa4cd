package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Blocker is a session that has a row locked.
type Blocker struct {
	lease.Evicted
	Own bool // of the user that asks
}

// Why says for which row a section of evictions looks: the name of a section that replaces @late.
type Why string

const (
	LateLease Why = "late-lease"   // of an owner whose lease has expired
	LateGroup Why = "late-readers" // shared, which has no end of its own, by readers without a lease
	Whatever  Why = "late-any"
)

// Expired is the row of a key, if it has expired as Why says.
type Expired struct {
	Key string
	Why Why
}

// Section returns a section that looks for the row.
func (e Expired) Section(d Texts, section string) string {
	return strings.Replace(d.Text(section), "@late", d.Text(string(e.Why)), 1)
}

// AwaitRow waits for the row of an expired key with the sections session-id and await-expired, no
// longer than the session waits for any row. It first calls waiting with the server's id of s:
// while it waits, the server shows what s waits for.
func AwaitRow(
	ctx context.Context, s *conn.Session, d Texts, row Expired, waiting func(session int64),
) error {
	return s.InTx(ctx, func() error {
		var id, one int64
		if err := s.QueryRow(ctx, d.Text("session-id"), nil, &id); err != nil {
			return err
		}
		waiting(id)
		err := s.QueryRow(ctx, row.Section(d, "await-expired"), []any{[]byte(row.Key)}, &one)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
}

// Blockers runs a section that returns blockers. Own and ended are 1 for true, the age is in µs.
func Blockers(ctx context.Context, s *conn.Session, query string, args []any) (
	out []Blocker, err error,
) {
	err = s.Query(ctx, query, args, func(row conn.Columns) error {
		var b Blocker
		var age int64
		err := row.Scan(&b.Session, &b.User, &b.From, &age, &b.Own, &b.Ended, &b.Prepared)
		b.Age = time.Duration(age) * time.Microsecond
		out = append(out, b)
		return err
	})
	return out, err
}
