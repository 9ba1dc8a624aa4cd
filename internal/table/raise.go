package table

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Raiser = (*Store)(nil)

// Raise changes each row in a statement of its own.
func (s *Store) Raise(ctx context.Context, reqs []lease.RaiseRequest) ([]lease.Raised, error) {
	out, ops := make([]lease.Raised, len(reqs)), make([]*op, len(reqs))
	rows := make([]int64, len(reqs))
	for i, r := range reqs {
		if out[i].Err = r.Check(); out[i].Err == nil {
			ops[i] = s.begin(len(ops) > 1, conn.Release, task{other: s.raise(r, &rows[i])})
		}
	}
	for i, op := range ops {
		if op == nil {
			continue
		}
		_, _, err := s.conclude(ctx, "raise the token of", reqs[i].Key, op)
		out[i].Err = err
		out[i].Gone = err == nil && rows[i] == 0
	}
	return out, only(out, func(r lease.Raised) error { return r.Err })
}

// raise counts the rows that one try has changed. Only the answer of a try that was concluded is
// read.
func (s *Store) raise(r lease.RaiseRequest, rows *int64) func(context.Context, *conn.Session) error {
	args := []any{r.To, []byte(r.Key), conn.Bytes(r.Owner), r.Token, r.To}
	return func(ctx context.Context, session *conn.Session) (err error) {
		*rows, err = session.Change(ctx, s.d.Text("raise"), args...)
		return err
	}
}
