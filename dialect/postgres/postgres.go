// Package postgres is rowlock's PostgreSQL dialect, for PostgreSQL 13 and later through
// jackc/pgx/v5 (its stdlib or, for the in-transaction operations, pgx.Tx itself).
package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql
var statements embed.FS

const quote = `"`

// database speaks to PostgreSQL.
type database struct {
	sqlstore.Base
	settings sqlstore.Settings
}

var room = sqlstore.Room{Name: "postgres", Quote: quote, Files: statements, Open: open}

// New returns the dialect. Open and Migrate refuse names that do not match what [dialect.Prefix]
// and [dialect.Schema] allow. Open refuses a DSN that cannot be parsed.
func New(opts ...dialect.Option) dialect.Dialect { return sqlstore.New(room, opts) }

func open(s sqlstore.Settings, text sqlstore.Sections) (sqlstore.Database, sqlstore.Features) {
	d := &database{sqlstore.Base{Sections: text, Note: sqlstore.AsText, TTL: sqlstore.Micros, Waiters: waiters}, s}
	return d, sqlstore.Features{
		Dollars: true, ShareLock: " FOR SHARE",
		Silence: d.silence, Listener: d, Evictor: d,
	}
}

// List encodes keys as an array literal.
func (d *database) List(keys []string) any { return byteaArray(keys) }

// Setup makes the session's settings. READ COMMITTED, whatever the database defaults to, because at
// a higher level a statement that met a concurrent change fails instead of reading again. Commits
// are durable and every wait is bounded. Plans use the primary key from the first row on, because a
// plan that was made when the table was empty is kept. The server notices a vanished client after
// 20 s, and not after the machine's two hours. Setup leaves a session alone that other clients
// share.
func (d *database) Setup(ctx context.Context, s *sqlstore.Session) error {
	if err := relays(s); err != nil {
		return err
	}
	if d.settings.Pooled {
		return d.setupPooled(ctx, s)
	}
	_, err := s.Conn().ExecContext(ctx, `SELECT set_config('default_transaction_isolation', 'read committed', false),
		set_config('default_transaction_deferrable', 'off', false),
		set_config('lock_timeout', '1000', false),
		set_config('statement_timeout', '5000', false),
		set_config('idle_in_transaction_session_timeout', '4000', false),
		set_config('plan_cache_mode', 'force_generic_plan', false),
		set_config('jit', 'off', false),
		set_config('enable_seqscan', 'off', false),
		set_config('enable_hashjoin', 'off', false),
		set_config('enable_mergejoin', 'off', false),
		set_config('tcp_keepalives_idle', '10', false),
		set_config('tcp_keepalives_interval', '3', false),
		set_config('tcp_keepalives_count', '3', false),
		set_config('bytea_output', 'hex', false),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
			ELSE current_setting('synchronous_commit') END, false)`)
	return err
}

// Acquire tries the strategy's plain statement and, if that changed nothing, the one that handles
// every state.
func (d *database) Acquire(ctx context.Context, s *sqlstore.Session, strategy sqlstore.Strategy, r lease.AcquireRequest) (lease.Acquired, error) {
	args := []any{[]byte(r.Key), sqlstore.Bytes(r.Owner), r.Note, sqlstore.Micros(r.TTL)}
	if strategy == sqlstore.Insert {
		return d.grant(ctx, s, "acquire-insert", append(args, lease.Bucket(r.Key)), "acquire-any", r)
	}
	return d.grant(ctx, s, "acquire-update", args, "acquire-any", r)
}

// grant runs a plain section, which returns a token or nothing, and after nothing the full one,
// which returns an answer.
func (d *database) grant(ctx context.Context, s *sqlstore.Session, plain string, args []any, full string, r lease.AcquireRequest) (lease.Acquired, error) {
	a := sqlstore.Answer{State: sqlstore.StateMine}
	err := s.QueryRow(ctx, d.Text(plain), args, &a.Token)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.QueryRow(ctx, d.Text(full), append(args[:4:4], lease.Bucket(r.Key)), a.Dest()...)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return lease.Acquired{}, sqlstore.ErrRowShape
	case err != nil:
		return lease.Acquired{}, err
	}
	return a.Acquired()
}

// Renew renews a batch in one statement.
func (d *database) Renew(ctx context.Context, s *sqlstore.Session, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	out := make([]lease.Renewed, 0, len(reqs))
	err := s.Query(ctx, d.Text("renew"), renewArrays(reqs), func(row sqlstore.Columns) error {
		var outcome, clock, remaining int64
		if err := row.Scan(&outcome, &clock, &remaining); err != nil {
			return err
		}
		out = append(out, lease.Renewed{
			Outcome: lease.RenewOutcome(outcome), Clock: sqlstore.Duration(clock), Remaining: sqlstore.Duration(remaining),
		})
		return nil
	})
	if err == nil && len(out) != len(reqs) {
		err = fmt.Errorf("renew: %d answers to %d requests", len(out), len(reqs))
	}
	return out, err
}

// Release clears the owner of one row, and reports whether another process waits for it.
func (d *database) Release(ctx context.Context, s *sqlstore.Session, l lease.Lease) (out lease.Released, err error) {
	args := []any{[]byte(l.Key), sqlstore.Bytes(l.Owner), l.Token, sqlstore.Bytes(s.Process)}
	err = s.QueryRow(ctx, d.Text("release"), args, &out.Awaited)
	if errors.Is(err, sql.ErrNoRows) {
		return lease.Released{Gone: true}, nil
	}
	return out, err
}
