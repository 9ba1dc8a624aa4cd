package table

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// leave removes members, several in one statement. Of one it also tells whether others stay. A
// member may leave however late.
func (s *Store) leave(ctx context.Context, _ string, reqs []lease.RenewRequest, _ wanted) []member {
	if len(reqs) == 1 && reqs[0].Token != 0 {
		m, uncertain, err := askTwice(ctx, s.engine, about{conn.Release, "release", reqs[0].Key},
			func(ctx context.Context, session *conn.Session) (member, error) {
				return s.leaveOne(ctx, session, &reqs[0], true)
			})
		return []member{m.told(uncertain, err)}
	}
	reqs = slices.Clone(reqs)
	found, uncertain, err := askTwice(ctx, s.engine, about{conn.Release, "release", reqs[0].Key},
		func(ctx context.Context, session *conn.Session) (map[id]member, error) {
			rows, err := s.named(ctx, session, reqs)
			if err != nil {
				return nil, err
			}
			return s.leaveAll(ctx, session, rows)
		})
	return answers(reqs, found, uncertain, err)
}

// named returns requests with the tokens of those that know none, in the order of all statements.
func (s *Store) named(
	ctx context.Context, session *conn.Session, reqs []lease.RenewRequest,
) ([]lease.RenewRequest, error) {
	rows := slices.Clone(reqs)
	if slices.ContainsFunc(rows, func(r lease.RenewRequest) bool { return r.Token == 0 }) {
		known, err := s.members(ctx, session, "member-find", s.d.Rows(rows), false)
		if err != nil {
			return nil, err
		}
		for i, r := range rows {
			rows[i].Token = cmp.Or(r.Token, known[id{r.Key, r.Owner}].token)
		}
	}
	slices.SortFunc(rows, memberOrder)
	return rows, nil
}

// leaveOne removes a member. It looks for others in a statement that removes it, or in one after
// its commit.
func (s *Store) leaveOne(
	ctx context.Context, session *conn.Session, r *lease.RenewRequest, look bool,
) (m member, err error) {
	args := []any{[]byte(r.Key), conn.Bytes(lease.ReaderGroup(r.Token)), conn.Bytes(r.Owner)}
	if s.d.CountsOnly {
		n, err := session.Change(ctx, s.d.Text("member-leave-one"), args...)
		if err != nil || n == 0 {
			return m, err
		}
		m.token = r.Token
		if look {
			s.rest(ctx, session, args[:2], &m)
		}
		return m, nil
	}
	var others, intended int64
	err = session.QueryRow(ctx, s.d.Text("member-leave-one"), args, &others, &intended)
	if errors.Is(err, sql.ErrNoRows) {
		return m, nil
	}
	// Of two members that leave at once, each may see the other, and the reader group is then ended by
	// whatever finds it. If a writer waits, it shall not wait for that: the next look decides.
	m.token, m.last, m.stays = r.Token, others == 0, others != 0 && intended == 0
	return m, err
}

// rest tells whether others stay in the reader group of a member that has left. An error tells
// neither, and is no error of the leave, which is done.
func (s *Store) rest(ctx context.Context, session *conn.Session, group []any, m *member) {
	var one int64
	err := session.QueryRow(ctx, s.d.Text("member-rest"), group, &one)
	m.stays, m.last = err == nil, errors.Is(err, sql.ErrNoRows)
}

// leaveAll removes members. A database that returns only a count removes all in one statement, or
// none, and then each in one of its own.
func (s *Store) leaveAll(
	ctx context.Context, session *conn.Session, rows []lease.RenewRequest,
) (map[id]member, error) {
	if !s.d.CountsOnly {
		return s.members(ctx, session, "member-leave", s.d.Rows(rows), false)
	}
	n, err := session.Change(ctx, s.d.Text("member-leave"), append(s.d.Rows(rows), len(rows))...)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return eachMember(ctx, session, rows, func(r *lease.RenewRequest) (member, error) {
			return s.leaveOne(ctx, session, r, false)
		})
	}
	found := make(map[id]member, len(rows))
	for _, r := range rows {
		found[id{r.Key, r.Owner}] = member{token: r.Token}
	}
	return found, nil
}

// releaseMembers removes members, and ends their reader groups if they were the last.
func (s *Store) releaseMembers(ctx context.Context, leases []lease.Lease) []lease.Released {
	reqs := make([]lease.RenewRequest, len(leases))
	for i, l := range leases {
		reqs[i].Lease = l
	}
	out := make([]lease.Released, len(leases))
	var unsure []lease.RenewRequest
	var told []*lease.Released
	for i, m := range s.leaves.do(ctx, "", reqs) {
		o := &out[i]
		// The try without an answer may have removed it.
		o.Err, o.Gone = m.err, m.err == nil && m.token == 0 && !m.uncertain
		o.Shared = m.err == nil && !o.Gone
		switch {
		case m.err != nil || m.stays:
		case m.last && !s.joins.asks(leases[i].Key):
			o.Shared, o.Awaited = false, s.freed(ctx, leases[i].Key)
		default:
			unsure, told = append(unsure, reqs[i]), append(told, o)
		}
	}
	if len(unsure) > 0 {
		for n, m := range s.ends.do(ctx, "", unsure) {
			if m.last {
				told[n].Shared, told[n].Awaited = false, m.awaited
			}
		}
	}
	return out
}

// end ends those of the reader groups that members have left that have no live one. Only the first
// that has left a group is told, so that its key is announced once. An error is none of theirs: the
// next taker ends such a group.
func (s *Store) end(ctx context.Context, _ string, left []lease.RenewRequest, _ wanted) []member {
	out, first := make([]member, len(left)), make(map[string]int)
	for i, r := range slices.Backward(left) {
		first[r.Key] = i
	}
	for _, key := range s.emptyGroups(ctx, slices.Collect(maps.Keys(first))) {
		out[first[key]] = member{last: true, awaited: s.freed(ctx, key)}
	}
	return out
}

// emptyGroups returns which keys a reader group without a live member holds that is to be ended.
func (s *Store) emptyGroups(ctx context.Context, keys []string) []string {
	empty, _ := ask(ctx, s.engine, about{conn.Release, "release", keys[0]},
		func(ctx context.Context, session *conn.Session) (empty []string, err error) {
			err = session.Query(ctx, s.d.Text("member-others"), []any{s.d.List(keys)},
				func(row conn.Columns) error {
					var key []byte
					var intended int64
					err := row.Scan(&key, &intended)
					// A request of this process that is under way joins the reader group sooner than
					// it could make another.
					if intended != 0 || !s.joins.asks(string(key)) {
						empty = append(empty, string(key))
					}
					return err
				})
			return empty, err
		})
	return empty
}

// freed ends a reader group without members, and finds out whether another process waits for its
// key.
func (s *Store) freed(ctx context.Context, key string) (awaited bool) {
	ended, err := s.endGroup(ctx, key)
	if err != nil || !ended {
		return false
	}
	waits, err := s.Awaited(ctx, s.process.alone(), []string{key})
	return err == nil && waits[0]
}
