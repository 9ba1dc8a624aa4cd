package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// acquired is the answer to a request to share.
func (m member) acquired() lease.Acquired {
	switch {
	case m.err != nil:
		return lease.Acquired{Err: m.err}
	case m.token != 0:
		err := conn.CheckToken(true, m.token)
		return lease.Acquired{Granted: err == nil, Token: max(0, m.token), Unknown: m.uncertain, Err: err}
	}
	m.refused.Unknown = m.uncertain
	return m.refused
}

// share lets members in, and looks once at the rows of all that were not let in.
func (s *Store) share(
	ctx context.Context, note string, reqs []lease.RenewRequest, wanted wanted,
) []member {
	out := s.join(ctx, note, reqs, wanted)
	refused := make(map[string]lease.Acquired)
	for i, m := range out {
		if m.err == nil && m.token == 0 {
			refused[reqs[i].Key] = lease.Acquired{}
		}
	}
	if len(refused) == 0 {
		return out
	}
	groups := s.notShared(ctx, refused)
	var again []lease.RenewRequest
	for i := range out {
		r := reqs[i]
		out[i].refused = refused[r.Key]
		if r.Token = groups[r.Key]; out[i].err == nil && out[i].token == 0 && r.Token > 0 {
			again = append(again, r)
		}
	}
	if len(again) > 0 {
		s.rejoin(ctx, again, reqs, out)
	}
	return out
}

// rejoin answers live members that ask again while an intent refuses new ones. It renews them, so
// that the answer is that of a statement that has written the member's row.
func (s *Store) rejoin(ctx context.Context, again, reqs []lease.RenewRequest, out []member) {
	slices.SortFunc(again, memberOrder)
	found, uncertain, err := askTwice(ctx, s.engine, about{conn.Acquire, "share", again[0].Key},
		func(ctx context.Context, session *conn.Session) (map[id]member, error) {
			return s.extend(ctx, session, again)
		})
	for i, r := range reqs {
		m, ok := found[id{r.Key, r.Owner}]
		if refused := out[i].err == nil && out[i].token == 0; refused && (ok || err != nil) {
			out[i] = m.told(uncertain, err)
		}
	}
}

// notShared describes the rows of keys that members were not let in to. It writes nothing. It
// returns the tokens of the reader groups that have a live member.
func (s *Store) notShared(
	ctx context.Context, refused map[string]lease.Acquired,
) (groups map[string]lease.Token) {
	var keys []string
	for key := range refused {
		keys = append(keys, key)
	}
	out := make([]lease.Acquired, len(keys))
	records, err := s.listed(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	rows := byKeys(records)
	for i, key := range keys {
		switch r, found := rows[key]; {
		case err != nil:
			out[i].Err = err
		case r.Err != nil:
			out[i].Err = fmt.Errorf("share: %w", r.Err)
		case found && r.Placement != s.d.Names().Placement:
			out[i].Err = fmt.Errorf("%w: share %q", lease.ErrMoved, key)
		case !r.Held:
			out[i].Possible = true
		default:
			out[i].Holder = lease.Holder{Note: r.Note, Remaining: r.Remaining}
		}
	}
	if err == nil {
		s.unveil(ctx, keys, out)
	}
	groups = make(map[string]lease.Token)
	for i, key := range keys {
		if refused[key] = out[i]; out[i].Holder.Shared {
			groups[key] = rows[key].Token
		}
	}
	return groups
}

// unveil reports the reader group that holds each key. A group without a live member is free, as
// far as a request to share it can know.
func (s *Store) unveil(ctx context.Context, all []string, out []lease.Acquired) {
	var keys []string
	for i := range out {
		if isGroups(out[i]) {
			keys = append(keys, all[i])
		}
	}
	if len(keys) == 0 {
		return
	}
	groups, err := s.groups(ctx, keys)
	for i := range out {
		if !isGroups(out[i]) {
			continue
		}
		t, found := groups[all[i]]
		switch {
		case err != nil:
			out[i] = failed(out[i], err)
		case !found || t.members == 0:
			out[i] = lease.Acquired{Possible: true, Locked: true, Unknown: out[i].Unknown}
		default:
			out[i].Holder = lease.Holder{Note: t.note, Remaining: t.remaining, Shared: true}
		}
	}
}

// failed is an answer after an error. What is known of no try that has failed stays unknown: an
// earlier one without an answer may yet be granted.
func failed(a lease.Acquired, err error) lease.Acquired {
	if a.Unknown && !errors.Is(err, lease.ErrUnknown) {
		err = oneline.Join(lease.ErrUnknown, err)
	}
	return lease.Acquired{Err: err, Unknown: a.Unknown}
}

// mostSeized bounds how many rows of one call are looked at.
const mostSeized = 8

// errSeized ends what has found out what it can, and rolls it back.
var errSeized = errors.New("rolled back")

// swallowed returns an error if the row of a key is not locked by another transaction, and is as it
// was although a statement should have changed it. A trigger that drops or undoes changes looks
// like a transaction that keeps the row locked, and its key would be held for ever by no holder.
//
// It proves that before it says so: it locks the row itself, and then tries once more. What cannot
// be found out is no error.
func (s *Store) swallowed(ctx context.Context, key string) error {
	if ctx.Err() != nil {
		return nil
	}
	found := make(chan bool, 1) // a pinned connection may write to it after the call has left
	_ = s.once(ctx, s.newOp(conn.Acquire, task{
		other: func(ctx context.Context, session *conn.Session) error {
			err := seize(ctx, session, s.d, key) // mostly it is locked, and needs no transaction
			if err == nil {
				err = session.InTx(ctx, func() error { return s.tryInVain(ctx, session, key, found) })
			}
			if err == errSeized {
				return nil
			}
			return err
		},
	}))
	select {
	case <-found:
		return vanished(fmt.Sprintf("the row of %q, which no other transaction has locked, was not changed", key))
	default:
		return nil
	}
}

// tryInVain tries once more with the row locked.
func (s *Store) tryInVain(
	ctx context.Context, session *conn.Session, key string, found chan<- bool,
) error {
	if err := seize(ctx, session, s.d, key); err != nil {
		return err
	}
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: rehearsalTTL}
	_, err := s.d.Acquire(ctx, session, adapter.Update, r)
	// Where one connection writes at a time, a locked row is a file that is busy.
	if errors.Is(err, sqlstore.ErrRowShape) || !s.d.OneWriter && errors.Is(err, sqlstore.ErrRowLocked) {
		found <- true
	}
	return errSeized
}

// seize locks the row of a key, and returns errSeized if another transaction has it locked.
func seize(ctx context.Context, s *conn.Session, d *sqlstore.Dialect, key string) error {
	var one int
	err := s.QueryRow(ctx, d.Text("seize"), []any{[]byte(key)}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return errSeized
	}
	return err
}

// swallowedAny is swallowed for the first of keys of several that are not held and were not got.
func (s *Store) swallowedAny(ctx context.Context, reqs []lease.AcquireRequest, out []lease.Acquired) error {
	looked := 0
	for i := range out {
		if !out[i].Locked || out[i].Unknown || out[i].Err != nil {
			continue
		}
		if err := s.swallowed(ctx, reqs[i].Key); err != nil {
			return err
		}
		if looked++; looked == mostSeized {
			break
		}
	}
	return nil
}
