package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// join lets members in, in one statement if the database returns what it writes, or if all are for
// one key. Each answer is told by a statement that has written this member's row.
func (s *Store) join(
	ctx context.Context, note string, reqs []lease.RenewRequest, wanted wanted,
) []member {
	text := s.d.AsStored(note)
	if len(reqs) == 1 {
		m, uncertain, err := askTwice(ctx, s.engine, about{conn.Acquire, "share", reqs[0].Key},
			func(ctx context.Context, session *conn.Session) (m member, err error) {
				if rows := wanted(); len(rows) > 0 {
					m, err = s.joinOne(ctx, session, text, &rows[0])
				}
				return m, err
			})
		return []member{m.told(uncertain, err)}
	}
	found, uncertain, err := askTwice(ctx, s.engine, about{conn.Acquire, "share", reqs[0].Key},
		func(ctx context.Context, session *conn.Session) (map[id]member, error) {
			rows := wanted()
			if len(rows) == 0 {
				return nil, nil
			}
			slices.SortFunc(rows, memberOrder)
			return s.joinAll(ctx, session, text, rows)
		})
	return answers(reqs, found, uncertain, err)
}

func (s *Store) joinOne(
	ctx context.Context, session *conn.Session, note any, r *lease.RenewRequest,
) (m member, err error) {
	args := []any{conn.Bytes(r.Owner), note, conn.Micros(r.TTL), []byte(r.Key)}
	if !s.d.CountsOnly {
		var group []byte
		err := session.QueryRow(ctx, s.d.Text("share-one"), args, &group)
		if errors.Is(err, sql.ErrNoRows) {
			return member{}, nil
		}
		if err == nil && len(group) != len(lease.Owner{}) {
			err = fmt.Errorf("%w: the reader group of %q is called %x", lease.ErrCorrupt, r.Key, group)
		}
		if err == nil {
			m.token, _ = lease.ReaderGroupToken(lease.Owner(group))
		}
		return m, err
	}
	res, err := session.Exec(ctx, s.d.Text("share-one"), args...)
	if err != nil {
		return m, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return m, err
	}
	token, err := res.LastInsertId()
	return member{token: lease.Token(token)}, err
}

func (s *Store) joinAll(
	ctx context.Context, session *conn.Session, note any, rows []lease.RenewRequest,
) (map[id]member, error) {
	if !s.d.CountsOnly {
		return s.members(ctx, session, "share", append([]any{note}, s.d.Rows(rows)...), false)
	}
	if rows[0].Key == rows[len(rows)-1].Key {
		found, told, err := s.joinKey(ctx, session, note, rows)
		if told || err != nil {
			return found, err
		}
	}
	return eachMember(ctx, session, rows, func(r *lease.RenewRequest) (member, error) {
		return s.joinOne(ctx, session, note, r)
	})
}

// joinKey reads from a result that the statement has made each request for one key a member, or
// none: its count says which, and its insert id is the token. Any other count tells nothing, and
// neither does a conflict: a request that is repeated is a member already.
func (s *Store) joinKey(
	ctx context.Context, session *conn.Session, note any, rows []lease.RenewRequest,
) (found map[id]member, told bool, err error) {
	res, err := session.Exec(ctx, s.d.Text("share"), append([]any{note}, s.d.Rows(rows)...)...)
	if err != nil {
		if sqlstore.Judge(s.d, err).Class == sqlstore.Conflict {
			err = nil
		}
		return nil, false, err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 0 {
		return nil, err == nil, err
	}
	token, err := res.LastInsertId()
	if err != nil || n != int64(len(rows)) {
		return nil, false, err
	}
	found = make(map[id]member, len(rows))
	for _, r := range rows {
		found[id{r.Key, r.Owner}] = member{token: lease.Token(token)}
	}
	return found, true, nil
}

// eachMember runs one for each request, in one transaction: each has a statement of its own, whose
// count tells what it has done.
func eachMember(
	ctx context.Context, session *conn.Session, rows []lease.RenewRequest,
	one func(*lease.RenewRequest) (member, error),
) (map[id]member, error) {
	found := make(map[id]member, len(rows))
	err := session.InTx(ctx, func() error {
		for i := range rows {
			m, err := one(&rows[i])
			if err != nil {
				return err
			}
			if at := (id{rows[i].Key, rows[i].Owner}); m.token != 0 {
				found[at] = m
			}
		}
		return nil
	})
	return found, err
}
