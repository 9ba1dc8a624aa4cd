package shedlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Store = (*Store)(nil)

// Store is a lease.Store over ShedLock's table. It is safe for concurrent use, and needs no Close.
type Store struct {
	db          *sql.DB
	dialect     *sqlstore.Dialect
	text        text
	zone        string // of the sessions, if it is not the server's
	names, most int    // the lengths of name and locked_by in characters
	widest      rune   // that locked_by takes
	ends        bool   // the column lock_until has no time after lastStamp
	clocks      clocks
}

// tries of a request that another transaction was in the way of, or of which no answer came.
const tries = 5

var (
	// errRaced says that the row changed between two statements.
	errRaced = errors.New("the row changed underneath")
	// errStrayed says that a write would not be committed, or have other times. The session has gone.
	errStrayed = fmt.Errorf("%w: sessions of the pool have autocommit = 0, another time_zone than the "+
		"server, or a timestamp: leave these out of the DSN, and of what is sent on its connections", lease.ErrConfig)
)

// Acquire grants each free or expired key to its requester. Its tokens are 0. See [lease.Store].
func (s *Store) Acquire(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	return each(ctx, reqs, s.acquire)
}

// Renew extends leases that are still owned and have not expired. See [lease.Store].
func (s *Store) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	return each(ctx, reqs, s.renew)
}

// Release ends leases. Gone says that the row names another owner, or is free or expired: it does not
// tell the two apart. See [lease.Store].
func (s *Store) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	return each(ctx, leases, s.release)
}

func each[R, A any](ctx context.Context, reqs []R, one func(context.Context, R) A) ([]A, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answers := make([]A, len(reqs))
	for i, r := range reqs {
		answers[i] = one(ctx, r)
	}
	return answers, nil
}

// acquire tries until it knows the outcome. After an answer that was lost, the row says whether this
// owner has it, and then a write that is acknowledged says so too: a read alone may show a commit
// that is not durable yet.
func (s *Store) acquire(ctx context.Context, r lease.AcquireRequest) (a lease.Acquired) {
	if err := s.check(r); err != nil {
		return lease.Acquired{Err: err}
	}
	err := s.settle(ctx, "acquire", r.Key, &a.Unknown, func(c *sql.Conn) (sent bool, err error) {
		var holder row
		a.Granted, holder, sent, err = s.attempt(ctx, c, r)
		if err == nil && !a.Granted {
			a.Holder = lease.Holder{Note: shortened(holder.note()), Remaining: holder.left}
		}
		return sent, err
	})
	if err != nil {
		return lease.Acquired{Err: err}
	}
	return a
}

// settle repeats what is idempotent until it has an answer. unknown is set once a write was sent of
// which no answer came.
func (s *Store) settle(
	ctx context.Context, verb, key string, unknown *bool, do func(*sql.Conn) (sent bool, err error),
) error {
	pauses := retry.Pauses()
	for try := 1; ; try++ {
		sent := false
		err := s.on(ctx, func(c *sql.Conn) (err error) { sent, err = do(c); return err })
		v := sqlstore.Verdict{Class: sqlstore.Conflict}
		told := errors.Is(err, lease.ErrConfig) || errors.Is(err, lease.ErrInvalidKey)
		switch {
		case errors.Is(err, errRaced), errors.Is(err, errStrayed):
		case err == nil, told && !*unknown:
			return err
		case told:
			v.Class = sqlstore.Refused
		default:
			v = sqlstore.Judge(s.dialect, err)
		}
		*unknown = *unknown || sent && v.Class == sqlstore.Unknown
		if v.Class.Retry() && try < tries && retry.Sleep(ctx, pauses.NextBackOff()) {
			continue
		}
		if *unknown {
			return fmt.Errorf("%w: shedlock: %s %q: %w", lease.ErrUnknown, verb, key, err)
		}
		return v.Explain(fmt.Sprintf("shedlock: %s %q", verb, key), err)
	}
}

// on calls do with a connection of the pool, from which it takes what an application has left there:
// in its transaction, or without autocommit, a grant would end with the connection, and on MySQL a
// TIMESTAMP of another zone is another time. What cannot be used is closed.
func (s *Store) on(ctx context.Context, do func(*sql.Conn) error) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	err = s.dialect.Abandon(ctx, c)
	if fit := false; err == nil && s.text.fit != "" { // PostgreSQL's commit, and times there have no zone
		if err = c.QueryRowContext(ctx, s.text.fit, s.zone).Scan(&fit); err == nil && !fit {
			err = errStrayed
		}
	}
	if err != nil {
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
		return err
	}
	return do(c)
}

// attempt writes only if the row is free, expired or this owner's.
func (s *Store) attempt(
	ctx context.Context, c *sql.Conn, r lease.AcquireRequest,
) (granted bool, found row, sent bool, err error) {
	found, ok, err := s.look(ctx, c, r.Key)
	switch {
	case err != nil:
		return false, found, false, err
	case !ok:
		err = s.create(ctx, c, r)
		return err == nil, row{}, true, err
	case found.name != r.Key:
		return false, found, false, fmt.Errorf("%w: shedlock: the table's collation takes %q for %q, which is there: use that",
			lease.ErrInvalidKey, r.Key, found.name)
	}
	if err := s.clocks.check(found); err != nil {
		return false, found, false, err
	}
	if found.left > 0 && !found.isOf(r.Owner) {
		return false, found, false, nil
	}
	n, err := lease.InTx(c).Exec(ctx, s.text.update, []any{r.TTL.Microseconds(), s.lockedBy(r), r.Key, mark(r.Owner)})
	if err == nil && n == 0 {
		err = errRaced
	}
	return err == nil, found, true, err
}

// create inserts the row. If another process was first, the next attempt finds its row.
func (s *Store) create(ctx context.Context, c *sql.Conn, r lease.AcquireRequest) error {
	_, err := lease.InTx(c).Exec(ctx, s.text.insert, []any{r.Key, r.TTL.Microseconds(), s.lockedBy(r)})
	if err != nil && sqlstore.Judge(s.dialect, err).Class == sqlstore.Refused {
		if _, ok, failed := s.look(ctx, c, r.Key); ok && failed == nil {
			err = errRaced
		}
	}
	return err
}

// renew finds no change if the row has this very expiry already: MySQL then counts no row.
func (s *Store) renew(ctx context.Context, r lease.RenewRequest) (a lease.Renewed) {
	unknown := false
	if a.Err = s.fits(r.Key, r.TTL); a.Err != nil {
		return a
	}
	a.Err = s.settle(ctx, "renew", r.Key, &unknown, func(c *sql.Conn) (sent bool, err error) {
		n, err := lease.InTx(c).Exec(ctx, s.text.renew, []any{r.TTL.Microseconds(), r.Key, mark(r.Owner)})
		if err != nil {
			return true, err
		}
		if a.Outcome = lease.Extended; n > 0 {
			return true, nil
		}
		found, ok, err := s.look(ctx, c, r.Key)
		if a.Outcome = lease.Lost; err == nil && ok && found.isOf(r.Owner) && found.left > 0 {
			a.Outcome, a.Remaining = lease.Busy, found.left
		}
		return false, err
	})
	return a
}

func (s *Store) release(ctx context.Context, l lease.Lease) (a lease.Released) {
	unknown := false
	a.Err = s.settle(ctx, "release", l.Key, &unknown, func(c *sql.Conn) (sent bool, err error) {
		n, err := lease.InTx(c).Exec(ctx, s.text.release, []any{l.Key, mark(l.Owner)})
		// A try without an answer may have released it.
		a.Gone = n == 0 && !unknown
		return true, err
	})
	return a
}

// check refuses what the columns cannot have: a database that is lax would cut it.
func (s *Store) check(r lease.AcquireRequest) error {
	if err := r.Check(); err != nil {
		return err
	}
	switch n := utf8.RuneCountInString(r.Key); {
	case !utf8.ValidString(r.Key) || strings.ContainsRune(r.Key, 0):
		return fmt.Errorf("%w: shedlock: %q is no text; ShedLock's names are", lease.ErrInvalidKey, r.Key)
	case n > s.names:
		return fmt.Errorf("%w: shedlock: %.24q… has %d characters; the column name has %d: shorten it",
			lease.ErrInvalidKey, r.Key, n, s.names)
	case r.TTL < time.Millisecond:
		return fmt.Errorf("%w: shedlock: %q: a TTL of %s; the table has milliseconds", lease.ErrConfig, r.Key, r.TTL)
	}
	return s.fits(r.Key, r.TTL)
}

// lastStamp is a day before MySQL's last TIMESTAMP, which depends on the time zone. A lax server writes
// a later one as 0000-00-00, and the key would be free.
var lastStamp = time.Date(2038, 1, 18, 0, 0, 0, 0, time.UTC)

func (s *Store) fits(key string, ttl time.Duration) error {
	if s.ends && ttl > time.Until(lastStamp) {
		return fmt.Errorf("%w: shedlock: %q: a TTL of %s ends after %s, when a TIMESTAMP does: make lock_until DATETIME(3)",
			lease.ErrConfig, key, ttl, lastStamp.Format(time.DateOnly))
	}
	return nil
}
