package table

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// members runs a section that returns key, owner and reader group of the members that it has
// changed, and perhaps what remains of them.
func (s *Store) members(
	ctx context.Context, session *conn.Session, section string, args []any, remains bool,
) (map[id]member, error) {
	found := make(map[id]member)
	err := session.Query(ctx, s.d.Text(section), args, func(row conn.Columns) error {
		var key, owner, group []byte
		var micros int64
		dest := []any{&key, &owner, &group, &micros}
		if !remains {
			dest = dest[:3]
		}
		err := row.Scan(dest...)
		if err != nil && !conn.IsBad(err) {
			return err
		}
		if len(owner) != 16 || len(group) != 16 {
			return nil // no request names it
		}
		token, _ := lease.ReaderGroupToken(lease.Owner(group))
		found[id{string(key), lease.Owner(owner)}] = member{
			token: token, group: lease.Owner(group), remaining: conn.Duration(micros), err: err,
		}
		return nil
	})
	return found, err
}

// renewMembers extends members, and nothing but their own rows.
func (s *Store) renewMembers(ctx context.Context, reqs []lease.RenewRequest) []lease.Renewed {
	rows := slices.Clone(reqs)
	slices.SortFunc(rows, memberOrder)
	out := make([]lease.Renewed, len(reqs))
	var left map[id]member
	found, err := ask(ctx, s.engine, about{conn.Release, "renew", reqs[0].Key},
		func(ctx context.Context, session *conn.Session) (map[id]member, error) {
			found, err := s.extend(ctx, session, rows)
			if err == nil && len(found) < len(rows) {
				left, err = s.members(ctx, session, "member-left", s.d.Rows(rows), true)
			}
			return found, err
		})
	for i, r := range reqs {
		switch m := left[id{r.Key, r.Owner}]; {
		case err != nil:
			out[i].Err = err
		case found[id{r.Key, r.Owner}].token == r.Token:
			out[i].Outcome = lease.Extended
		case m.err != nil:
			out[i].Err = m.err
		case m.token == r.Token && m.remaining > 0:
			out[i].Outcome, out[i].Remaining = lease.Busy, m.remaining
		}
	}
	return out
}

// extend extends members. A database that does not return which ones is asked one by one, unless it
// has changed all.
func (s *Store) extend(
	ctx context.Context, session *conn.Session, rows []lease.RenewRequest,
) (map[id]member, error) {
	if !s.d.CountsOnly {
		return s.members(ctx, session, "member-renew", s.d.Rows(rows), false)
	}
	n, err := session.Change(ctx, s.d.Text("member-renew"), s.d.Rows(rows)...)
	found := make(map[id]member, len(rows))
	if err != nil || n == 0 {
		return found, err
	}
	for i, r := range rows {
		changed := n == int64(len(rows))
		if !changed {
			one, err := session.Change(ctx, s.d.Text("member-renew"), s.d.Rows(rows[i:i+1])...)
			if err != nil {
				return nil, err
			}
			changed = one == 1
		}
		if changed {
			found[id{r.Key, r.Owner}] = member{token: r.Token}
		}
	}
	return found, nil
}
