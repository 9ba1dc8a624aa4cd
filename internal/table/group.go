package table

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// group is what a look says of a key that a reader group holds.
type group struct {
	members   int
	remaining time.Duration
	note      string
	refuses   bool
}

// groups looks at those of keys that a reader group holds. It writes nothing.
func (s *Store) groups(ctx context.Context, keys []string) (map[string]group, error) {
	return ask(ctx, s.engine, about{conn.Acquire, "look at the members of", keys[0]},
		func(ctx context.Context, session *conn.Session) (map[string]group, error) {
			found := make(map[string]group)
			err := session.Query(ctx, s.d.Text("member-look"), []any{s.d.List(keys)},
				func(row conn.Columns) error {
					var t group
					var key, note []byte
					var remaining, refuses int64
					err := row.Scan(&key, &t.members, &remaining, &note, &refuses)
					t.remaining, t.note, t.refuses = conn.Duration(remaining), string(note), refuses != 0
					found[string(key)] = t // of a bad row, what could be read
					return conn.UnlessBad(err)
				})
			return found, err
		})
}

// endGroup frees a key that a reader group without members holds. It waits for no fence and no
// member that joins: it then answers false, and so if the reader group has a member. It is harmless
// for a caller that is no member, at any time.
func (s *Store) endGroup(ctx context.Context, key string) (ended bool, err error) {
	return ask(ctx, s.engine, about{conn.Release, "end the reader group of", key},
		func(ctx context.Context, session *conn.Session) (ended bool, err error) {
			err = session.InTx(ctx, func() (err error) {
				ended, err = s.endLocked(ctx, session, key)
				return err
			})
			return ended, err
		})
}

// endLocked locks the row first. What it then reads, in statements of their own, is what was
// committed before: a member that joins afterwards needs the row.
func (s *Store) endLocked(
	ctx context.Context, session *conn.Session, key string,
) (ended bool, err error) {
	var group []byte
	err = session.QueryRow(ctx, s.d.Text("readers-lock"), []any{[]byte(key)}, &group)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !isGroupName(group) {
		return false, nil
	}
	if _, err := session.Exec(ctx, s.d.Text("readers-clear"), []byte(key), group); err != nil {
		return false, err
	}
	var one int
	err = session.QueryRow(ctx, s.d.Text("readers-left"), []any{[]byte(key), group}, &one)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	n, err := session.Change(ctx, s.d.Text("readers-end"), []byte(key), group)
	return n == 1, err
}

// unveilRecords says of records that a reader group holds who its members are.
func (s *Store) unveilRecords(
	ctx context.Context, f lease.Filter, records []lease.Record,
) ([]lease.Record, error) {
	var keys []string
	for _, r := range records {
		if r.Err == nil && isGroup(r) {
			keys = append(keys, r.Key)
		}
	}
	if len(keys) == 0 {
		return records, nil
	}
	groups, err := s.groups(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := records[:0]
	for _, r := range records {
		if r.Err == nil && isGroup(r) {
			t, found := groups[r.Key]
			r.Shared, r.Held = true, found && t.members > 0
			r.Members, r.Remaining, r.Intent, r.Note = t.members, t.remaining, t.refuses, t.note
		}
		if r.Held || !f.Held {
			out = append(out, r)
		}
	}
	return out, nil
}

// isGroupName reports whether an owner is a reader group, and not what an operator has written,
// with an expiry like a reader group's: such a key is held.
func isGroupName(owner []byte) bool {
	if len(owner) != len(lease.Owner{}) {
		return false
	}
	_, named := lease.ReaderGroupToken(lease.Owner(owner))
	return named
}

// isGroup reports whether a reader group holds the key, and not an operator who has ended a lease
// in a year that no duration reaches.
func isGroup(r lease.Record) bool {
	_, named := lease.ReaderGroupToken(r.Owner)
	return named && r.Remaining == forever
}

// unveilPlaces does it for positions in queues.
func (s *Store) unveilPlaces(
	ctx context.Context, waiters []lease.Lease, places []lease.QueuePosition,
) error {
	var keys []string
	for i, p := range places {
		if p.Err == nil && p.Remaining == forever {
			keys = append(keys, waiters[i].Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	groups, err := s.groups(ctx, keys)
	if err != nil {
		return err
	}
	for i := range places {
		if p := &places[i]; p.Err == nil && p.Remaining == forever {
			t := groups[waiters[i].Key]
			p.Shared, p.Remaining, p.Note = t.members > 0, t.remaining, t.note
			if t.members == 0 {
				p.Remaining = min(0, t.remaining)
			}
		}
	}
	return nil
}

// sweepMembers removes members and intents that have been dead for the retention, and ends reader
// groups without a live member.
func (s *Store) sweepMembers(ctx context.Context, o lease.SweepOptions) error {
	if s.shares() != nil {
		return nil
	}
	args := []any{conn.Micros(o.Retention), o.Batch}
	for more := true; more; {
		dead, err := ask(ctx, s.engine, about{conn.Acquire, "sweep", ""},
			func(ctx context.Context, session *conn.Session) (map[id]member, error) {
				return s.members(ctx, session, "member-dead", args, false)
			})
		if err == nil {
			err = s.dropMembers(ctx, dead)
		}
		if err != nil {
			return err
		}
		more = len(dead) >= o.Batch
		if !retry.Sleep(ctx, o.Pause) {
			return ctx.Err()
		}
	}
	return s.sweepGroups(ctx, o)
}

// dropMembers removes the dead. One that is alive again by now is an intent of a caller that will
// repeat it, or of a group that is none, and that no statement but this would ever remove.
func (s *Store) dropMembers(ctx context.Context, dead map[id]member) error {
	var members []lease.RenewRequest
	for m, of := range dead {
		if of.token == 0 {
			err := s.note(ctx, "member-leave-tx", []string{m.key}, []byte(m.key), conn.Bytes(of.group), conn.Bytes(m.owner))
			if err != nil {
				return err
			}
			continue
		}
		members = append(members, lease.RenewRequest{
			Lease: lease.Lease{Key: m.key, Owner: m.owner, Token: of.token},
		})
	}
	if len(members) == 0 {
		return nil
	}
	return s.leave(ctx, "", members, nil)[0].err
}

func (s *Store) sweepGroups(ctx context.Context, o lease.SweepOptions) error {
	idle, err := ask(ctx, s.engine, about{conn.Acquire, "sweep", ""},
		func(ctx context.Context, session *conn.Session) (keys []string, err error) {
			err = session.Query(ctx, s.d.Text("readers-idle"), []any{o.Batch},
				func(row conn.Columns) error {
					var key []byte
					err := row.Scan(&key)
					if err == nil {
						keys = append(keys, string(key))
					}
					return conn.UnlessBad(err)
				})
			return keys, err
		})
	for _, key := range idle {
		if err == nil {
			_, err = s.endGroup(ctx, key)
		}
	}
	return err
}
