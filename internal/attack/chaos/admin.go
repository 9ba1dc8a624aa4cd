//go:build linux

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

var adminFaults = []*fault{
	{
		name: "terminate", what: "sessions ended by the administrator, up to fifty a second",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 20*time.Millisecond, func() error { return r.terminate(ctx, rng) })
		},
	},
	{
		name: "connections", what: "all connections of the server taken by others, for up to two TTLs", alone: true,
		before: func(ctx context.Context, r *round) error { return r.server.limit(ctx, 60) },
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 500*time.Millisecond, func() error { return r.crowd(ctx, rng) })
		},
		heal: func(ctx context.Context, r *round) error { return r.server.limit(ctx, mostConnections) },
	},
	{
		name: "timeouts", alone: true,
		what:   "the shortest timeouts for statements, locks and idle sessions: 50 ms, or a second",
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error { return r.timeouts(ctx, rng) },
		heal:   func(ctx context.Context, r *round) error { return r.server.patient(ctx) },
	},
	{
		name: "read-only", what: "the database made read-only, and writable again", alone: true,
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, 400*time.Millisecond, func() error { return r.readOnly(ctx, rng) })
		},
		heal: func(ctx context.Context, r *round) error { return r.server.writable(ctx) },
	},
}

// terminate ends the session of one worker's connection.
func (r *round) terminate(ctx context.Context, rng *rand.Rand) error {
	r.blows.note("session ended")
	if r.server.name == "postgres" {
		_ = r.server.exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app' ORDER BY random() LIMIT 1`)
		return nil
	}
	id := r.server.ask(ctx, `SELECT id FROM `+innodbList+` ORDER BY rand() LIMIT 1`)
	if id == "" {
		return nil
	}
	how := "KILL "
	if rng.IntN(3) == 0 {
		how = "KILL QUERY "
	}
	_ = r.server.exec(ctx, how+id) // it may have gone
	return nil
}

// limit sets how many connections the server takes.
func (s *server) limit(ctx context.Context, n int) error {
	if s.name == "postgres" {
		return s.exec(ctx, fmt.Sprintf(`ALTER ROLE app CONNECTION LIMIT %d`, n))
	}
	return s.exec(ctx, fmt.Sprintf(`SET GLOBAL max_connections = %d`, n))
}

// crowd takes all connections there are, and cuts the workers' at the same time, so that they need
// new ones.
func (r *round) crowd(ctx context.Context, rng *rand.Rand) (err error) {
	db, err := sql.Open(fight.Database{Name: r.server.name}.Driver(), r.server.dsn(worker, r.server.address()))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxIdleConns(100)
	r.blows.note("all connections taken")
	for _, p := range r.proxies {
		p.Cut()
	}
	end := time.Now().Add(between(rng, ttl/2, 2*ttl))
	var taken []*sql.Conn
	defer func() {
		for _, c := range taken {
			err = errors.Join(err, c.Close())
		}
	}()
	for time.Now().Before(end) && ctx.Err() == nil {
		c, err := db.Conn(ctx)
		if err != nil {
			fight.Sleep(ctx, 5*time.Millisecond)
			continue
		}
		taken = append(taken, c)
	}
	return nil
}

// shortest are the settings with which an administrator has the server give up soon. Where 50 ms
// cannot be set it is the least that can.
var shortest = map[string][]string{
	"postgres": {"statement_timeout = 50", "lock_timeout = 50", "idle_in_transaction_session_timeout = 50"},
	"mariadb": {
		"max_statement_time = 0.05", "innodb_lock_wait_timeout = 0", "lock_wait_timeout = 0",
		"idle_transaction_timeout = 1", "wait_timeout = 1",
	},
	"mysql": {
		"max_execution_time = 50", "innodb_lock_wait_timeout = 1", "lock_wait_timeout = 1", "wait_timeout = 1",
	},
}

// timeouts sets one at a time for new sessions, and ends the sessions there are.
func (r *round) timeouts(ctx context.Context, rng *rand.Rand) error {
	values, how := shortest[r.server.name], `SET GLOBAL %s`
	if r.server.name == "postgres" {
		how = `ALTER DATABASE postgres SET %s`
	}
	return again(ctx, rng, 600*time.Millisecond, func() error {
		value := values[rng.IntN(len(values))]
		r.blows.note(value)
		if err := r.server.exec(context.WithoutCancel(ctx), fmt.Sprintf(how, value)); err != nil {
			return err
		}
		for _, p := range r.proxies {
			p.Cut()
		}
		return nil
	})
}

// patient has new sessions wait again.
func (s *server) patient(ctx context.Context) error {
	if s.name == "postgres" {
		return s.exec(ctx, `ALTER DATABASE postgres RESET ALL`)
	}
	for _, value := range shortest[s.name] {
		name, _, _ := strings.Cut(value, " ")
		if err := s.exec(ctx, fmt.Sprintf(`SET GLOBAL %s = DEFAULT`, name)); err != nil {
			return err
		}
	}
	return nil
}

// readOnly lasts for up to two TTLs. PostgreSQL has it for new transactions of new sessions, the
// others at once.
func (r *round) readOnly(ctx context.Context, rng *rand.Rand) error {
	r.blows.note("read-only")
	statement := `SET GLOBAL read_only = ON`
	if r.server.name == "postgres" {
		statement = `ALTER DATABASE postgres SET default_transaction_read_only = on`
	}
	if err := r.server.exec(context.WithoutCancel(ctx), statement); err != nil {
		return err
	}
	if r.server.name == "postgres" {
		for _, p := range r.proxies {
			p.Cut()
		}
	}
	fight.Sleep(ctx, between(rng, ttl/4, 2*ttl))
	return r.server.writable(context.WithoutCancel(ctx))
}

// writable undoes it, in a session that is writable itself.
func (s *server) writable(ctx context.Context) error {
	if s.name != "postgres" {
		return s.exec(ctx, `SET GLOBAL read_only = OFF`)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, text := range []string{
		`SET default_transaction_read_only = off`, `ALTER DATABASE postgres RESET default_transaction_read_only`,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'`,
	} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}
