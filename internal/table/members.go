package table

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// member is what a statement says of one: the token of its team, or 0 if it was not changed.
type member struct {
	token     int64
	remaining time.Duration
	err       error

	stays    bool           // others do, so that the team goes on
	last     bool           // none does
	refused  lease.Acquired // what is in the way of a request that was not let in
	doubtful bool           // an earlier try had an unknown outcome
}

// told is the answer, or only the error.
func (m member) told(doubtful bool, err error) member {
	if err != nil {
		return member{err: err}
	}
	m.doubtful = doubtful
	return m
}

// id names a member of any team of a key.
type id struct {
	key   string
	owner lease.Owner
}

// memberOrder is the order in which all statements lock members.
func memberOrder(a, b lease.RenewRequest) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Token, b.Token),
		slices.Compare(a.Owner[:], b.Owner[:]))
}

// members runs a section that returns key, owner and team of the members that it has changed, and
// perhaps what remains of them.
func (s *Store) members(
	ctx context.Context, session *sqlstore.Session, section string, args []any, remains bool,
) (map[id]member, error) {
	found := make(map[id]member)
	err := session.Query(ctx, s.d.Text(section), args, func(row sqlstore.Columns) error {
		var key, owner, team []byte
		var micros int64
		dest := []any{&key, &owner, &team, &micros}
		if !remains {
			dest = dest[:3]
		}
		err := row.Scan(dest...)
		if err != nil && !sqlstore.IsBad(err) {
			return err
		}
		if len(owner) != 16 || len(team) != 16 {
			return nil // no request names it
		}
		token, _ := lease.TeamToken(lease.Owner(team))
		found[id{string(key), lease.Owner(owner)}] = member{
			token: token, remaining: sqlstore.Duration(micros), err: err,
		}
		return nil
	})
	return found, err
}

func answers(
	reqs []lease.RenewRequest, found map[id]member, doubtful bool, err error,
) []member {
	out := make([]member, len(reqs))
	for i, r := range reqs {
		out[i] = found[id{r.Key, r.Owner}].told(doubtful, err)
	}
	return out
}

// renewMembers extends members, and nothing but their own rows.
func (s *Store) renewMembers(ctx context.Context, reqs []lease.RenewRequest) []lease.Renewed {
	rows := slices.Clone(reqs)
	slices.SortFunc(rows, memberOrder)
	out := make([]lease.Renewed, len(reqs))
	var left map[id]member
	found, err := ask(ctx, s.engine, lane.Release, "renew", reqs[0].Key,
		func(ctx context.Context, session *sqlstore.Session) (map[id]member, error) {
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
	ctx context.Context, session *sqlstore.Session, rows []lease.RenewRequest,
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
