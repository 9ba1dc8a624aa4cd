package optimistic

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// make creates the row, with a token above the floor of its bucket. The floor cannot be locked, so
// that the reaper may raise it and delete the row's predecessor after it was read. The insert waits
// for that commit, and then succeeds with a token that was granted before. So the floor is read
// again after the insert, when no row of this key can come or go any more, and the token raised
// above it.
//
// All that is one transaction. If the insert were committed first and the token raised afterwards,
// a client that dies between the two would leave a row with an old token, from which the next
// holder would count.
func (d swap) make(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	var token lease.Token
	err := s.InTx(ctx, func() (err error) {
		token, err = d.insert(ctx, s, r)
		return err
	})
	if err != nil {
		return lease.Acquired{}, err
	}
	return (&sqlstore.Answer{State: sqlstore.StateMine, Token: token}).Acquired(nil)
}

// insert returns sqlstore.ErrRowShape if another was faster, or the server's error of a duplicate,
// which is a conflict too.
func (d swap) insert(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (token lease.Token, err error) {
	key, bucket := []byte(r.Key), lease.Bucket(r.Key)
	res, err := s.Exec(ctx, d.Text("cas-insert"), key, conn.Bytes(r.Owner), d.AsStored(r.Note),
		conn.Micros(r.TTL), bucket)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return 0, sqlstore.ErrRowShape
	}
	var floor lease.Token
	if err := s.QueryRow(ctx, d.Text("cas-made"), []any{bucket, key}, &token, &floor); err != nil {
		return 0, err
	}
	if token > floor {
		return token, nil
	}
	_, err = s.Exec(ctx, d.Text("cas-raise"), floor+1, key)
	return s.Next(floor), err
}
