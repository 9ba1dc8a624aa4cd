//go:build linux

package fight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

var errUndone = errors.New("the section is to be rolled back")

// section is a call of DoTx that counts.
type section struct {
	*hand
	on   library
	key  string
	got  *held
	pass *passing

	// What its function does beside: undo is an error of its own, and refuse one of its COMMIT.
	undo, refuse bool

	began []int64 // when the function did
	token rowlock.Token
	w     writing // of its last run
}

// section counts in a DoTx of database/sql.
func (h *hand) section(ctx context.Context, key string) {
	s := &section{hand: h, on: databaseSQL, key: key, undo: h.rng.IntN(4) == 0}
	s.run(ctx, patience, h.Plan.ttl())
}

// run records its grant when its function begins to run, and its Unlock with its commit; the
// function may run several times, of which the last may be committed.
func (s *section) run(ctx context.Context, most, ttl time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s.got = &held{serial: s.serial.Add(1), ttl: ttl, left: true}
	s.pass = new(passing)
	sent := Now()
	err := s.on(s.pass.within(ctx), s.hand, s.key, s.f, rowlock.TTL(ttl))
	grant := s.event(history.Grant, s.got, sent, err)
	grant.Key, grant.Limit = s.key, most
	if len(s.began) == 0 || s.token == 0 {
		s.record.Add(grant)
		return
	}
	grant.Result, grant.Err, grant.Token, grant.Told = history.OK, "", s.token, s.began[0]
	s.record.Add(grant)
	is := result(err)
	if is != history.OK && is != history.Unknown && is != history.Lost {
		is = refusal(err)
	}
	s.wrote(is, err)
	if is == history.OK || is == history.Unknown {
		end := s.event(history.Unlock, s.got, s.began[len(s.began)-1], err)
		end.Key, end.Token, end.Left = s.key, s.token, true
		s.record.Add(end)
	}
}

// f is its function.
func (s *section) f(ctx context.Context, tx inTx) error {
	if len(s.began) > 0 {
		s.wrote(history.Refused, nil)
	}
	again := len(s.began) > 0
	s.began = append(s.began, Now())
	s.pass.begin(s.cut())
	l, err := s.client.TryLock(ctx, s.key, rowlock.Reentrant()) // another handle, for its token
	if err != nil {
		return err
	}
	s.token = l.Token()
	if err := l.Unlock(ctx); err != nil {
		return err
	}
	s.w = writing{hand: s.hand, got: s.got, op: fmt.Sprintf("%s-%d", s.name, s.serial.Add(1))}
	if s.refuse && !again {
		s.w.op += refusedAtCommit
	}
	if err := s.w.write(ctx, tx, s.key, s.token); err != nil || !s.undo {
		return err
	}
	return errUndone
}

// wrote records the write of the last run of its function.
func (s *section) wrote(is history.Result, err error) {
	if s.w.got == nil {
		return // the function has not come to its write
	}
	e := s.event(history.Write, s.w.got, s.began[len(s.began)-1], err)
	e.Key, e.Token, e.Op, e.Value, e.Result, e.Passes = s.key, s.token, s.w.op, s.w.value, is, s.pass.sent.Load()
	s.record.Add(e)
}

// library runs f in a DoTx.
type library func(
	ctx context.Context, h *hand, key string, f func(ctx context.Context, tx inTx) error, opts ...rowlock.Option,
) error

func databaseSQL(
	ctx context.Context, h *hand, key string, f func(ctx context.Context, tx inTx) error, opts ...rowlock.Option,
) error {
	return h.client.DoTx(ctx, key, func(ctx context.Context, tx *sql.Tx) error { return f(ctx, sqlTx{tx}) }, opts...)
}

// inTx is a transaction of any library.
type inTx interface {
	read(ctx context.Context, to *int64, query string, args ...any) error
	exec(ctx context.Context, query string, args ...any) error
}

type sqlTx struct{ tx *sql.Tx }

func (t sqlTx) read(ctx context.Context, to *int64, query string, args ...any) error {
	return t.tx.QueryRowContext(ctx, query, args...).Scan(to)
}

func (t sqlTx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.tx.ExecContext(ctx, query, args...)
	return err
}
