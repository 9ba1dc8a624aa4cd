package table_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// turnSession is a session as it waits for turns, and how the server knows it.
func turnSession(t *testing.T, e *testdb.Env) (s *sqlstore.Session, id int64) {
	t.Helper()
	s = e.Session(t)
	wantIs(t, e.Dialect.Turner.PrepareTurns(t.Context(), s), nil)
	query := `SELECT pg_backend_pid()`
	if e.Driver == "mysql" {
		query = `SELECT CONNECTION_ID()`
	}
	wantIs(t, s.Conn().QueryRowContext(t.Context(), query).Scan(&id), nil)
	return s, id
}

// endSession has the server end a session.
func endSession(t *testing.T, e *testdb.Env, id int64) {
	t.Helper()
	end := `SELECT pg_terminate_backend(%d)`
	if e.Driver == "mysql" {
		end = `KILL %d`
	}
	e.Exec(t, fmt.Sprintf(end, id))
}

// An operator may end any session.
func TestATurnPassesWhenTheServerEndsItsSession(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		other := turner(t, e)
		await := func(s *sqlstore.Session, again bool) error {
			return e.Dialect.Turner.AwaitTurn(t.Context(), s, other.Channel(), "key", again)
		}
		has, id := turnSession(t, e)
		wantIs(t, await(has, false), nil)
		endSession(t, e, id)
		takesATurn(t, other, "key")
		if await(has, true) == nil {
			t.Error("a session that was ended goes on")
		}
		has, _ = turnSession(t, e)
		wantIs(t, await(has, false), nil)
		waits, id := turnSession(t, e)
		failed := make(chan error, 1)
		go func() { failed <- await(waits, false) }()
		queued(t, e, id)
		endSession(t, e, id)
		if err := <-failed; err == nil {
			t.Error("a session that was ended has the turn")
		}
		wantIs(t, e.Dialect.Turner.EndTurn(t.Context(), has, other.Channel(), "key"), nil)
		takesATurn(t, other, "key")
		has.Discard()
	})
}

// queued returns when a session waits for its turn.
func queued(t *testing.T, e *testdb.Env, session int64) {
	t.Helper()
	query := map[string]string{
		"postgres": `SELECT count(*) FROM pg_locks
			WHERE locktype = 'advisory' AND NOT granted AND pid = %d`,
		"mariadb": `SELECT count(*) FROM information_schema.processlist
			WHERE state = 'User lock' AND id = %d`,
		"mysql": `SELECT count(*) FROM performance_schema.threads
			WHERE processlist_state = 'User lock' AND processlist_id = %d`,
	}[e.Name]
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var got int
		wantIs(t, e.DB.QueryRowContext(t.Context(), fmt.Sprintf(query, session)).Scan(&got), nil)
		if got > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the session does not wait for a turn")
		}
	}
}

// The lock stays in the session that has it, and one in another session would stay there too: a
// pooler gives both to others.
func TestATurnIsNotTakenInAnotherSessionThanItWasGivenUpIn(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		other := turner(t, e)
		never, _ := turnSession(t, e)
		defer never.Discard()
		wantIs(t, e.Dialect.Turner.AwaitTurn(t.Context(), never, other.Channel(), "key", true),
			lease.ErrUnsupported)
		takesATurn(t, other, "key")
	})
}

// A session that went back to the pool would keep its turn, or end after 2 s of silence.
func TestASessionOfTurnsDoesNotGoBackToThePool(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		db, other := e.Pool(t), turner(t, e)
		db.SetMaxOpenConns(3)
		for _, ends := range []bool{false, true} {
			s, _, err := table.Open(t.Context(), db, e.Dialect,
				table.Options{Lanes: 1, Timeout: 5 * time.Second, Turns: true})
			wantIs(t, err, nil)
			ctx, end := context.WithCancel(t.Context())
			_ = s.Turns(ctx, "key", func() bool {
				if ends {
					end()
				}
				return false
			})
			end()
			wantIs(t, s.Close(), nil)
			takesATurn(t, other, "key")
			unset(t, e, db)
		}
	})
}

// unset fails the test if a connection of db has the settings of a session of turns.
func unset(t *testing.T, e *testdb.Env, db *sql.DB) {
	t.Helper()
	query := `SELECT count(*) FROM pg_settings WHERE source = 'session'
		AND name IN ('lock_timeout', 'idle_session_timeout', 'statement_timeout', 'tcp_keepalives_idle')`
	if e.Driver == "mysql" {
		query = `SELECT @@session.wait_timeout <> @@global.wait_timeout
			OR @@session.long_query_time <> @@global.long_query_time`
	}
	var conns []*sql.Conn
	for range 3 {
		conn, err := db.Conn(t.Context())
		wantIs(t, err, nil)
		conns = append(conns, conn)
		var n int
		wantIs(t, conn.QueryRowContext(t.Context(), query).Scan(&n), nil)
		if n > 0 {
			t.Error("a connection of the pool has settings of a session of turns")
		}
	}
	for _, conn := range conns {
		wantIs(t, conn.Close(), nil)
	}
}

// The application has it for as long as it likes: turns are given up soon, and do not wait for it.
func TestTurnsDoNotWaitForAPoolThatIsInUse(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		db := e.Pool(t)
		db.SetMaxOpenConns(2)
		s, _, err := table.Open(t.Context(), db, e.Dialect,
			table.Options{Lanes: 1, Timeout: 5 * time.Second, Turns: true})
		wantIs(t, err, nil)
		defer func() { wantIs(t, s.Close(), nil) }()
		conn, err := db.Conn(t.Context())
		wantIs(t, err, nil)
		began := time.Now()
		err = s.Turns(t.Context(), "key", func() bool { t.Error("has a turn"); return false })
		if took := time.Since(began); err == nil || took > patience {
			t.Errorf("got error %v after %s", err, took)
		}
		wantIs(t, conn.Close(), nil)
		takesATurn(t, s, "key")
	})
}

// An older server does not end a silent session, and gives a turn to one whose network is cut.
func TestPostgresFindsOutThatTheClientOfATurnIsGone(t *testing.T) {
	e := on(t, "postgres")
	s, _ := turnSession(t, e)
	defer s.Discard()
	for _, name := range []string{
		"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count",
	} {
		var n int
		wantIs(t, s.Conn().QueryRowContext(t.Context(),
			`SELECT current_setting($1)::int`, name).Scan(&n), nil)
		if n == 0 || n > 2 {
			t.Errorf("%s = %d", name, n)
		}
	}
}
