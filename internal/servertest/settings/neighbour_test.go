package settings_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock/internal/servertest/settings"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// neighbours are what other clients of a pooler leave in the shared sessions.
var neighbours = map[string][]string{
	"repeatable read": {
		"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
		"SET array_nulls = off", "SET bytea_output = escape",
	},
	"serializable, and nothing may be written": {
		"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE",
	},
	"commits that wait for no disk": {"SET synchronous_commit = off"},
	"commits that wait for no standby": {
		"SET synchronous_commit = local", "SET IntervalStyle = iso_8601",
	},
	"no patience": {
		"SET lock_timeout = 1", "SET statement_timeout = 100",
	},
	"another role": {"SET ROLE pg_monitor", "SET row_security = off", "SET exit_on_error = on"},
	"another user": {"SET SESSION AUTHORIZATION pg_monitor"},
	"no index":     {"SET enable_indexscan = off", "SET enable_bitmapscan = off"},
}

// Behind PgBouncer in transaction mode every commit of a pinned connection is READ COMMITTED, waits
// for the disk, and does what its statement says, whatever other clients have set in the sessions
// that it gets.
func TestWhatANeighbourSetsBehindAPoolerChangesNothing(t *testing.T) {
	t.Parallel()
	direct, pooled := ownDatabase(t)
	for name, sets := range neighbours {
		t.Run(name, func(t *testing.T) {
			db := pooled.Pool(t)
			set := inEverySession(t, pooled.Pool(t), sets)
			if err := settings.ConformPinned(t.Context(), db, pooled, direct); err != nil {
				t.Error(err)
			}
			if got := told(t, direct); got != "read committed, on, 1s, 5s" {
				t.Errorf("commits were %s", got)
			}
			if left := leftBehind(t, pooled.Pool(t), set, sets); left != "" {
				t.Errorf("the neighbour has lost what it has set: %s", left)
			}
		})
	}
}

// A pool whose statements a tracer is to see has them one by one, and not below database/sql.
func TestWhatANeighbourSetsChangesNothingThroughATracedPool(t *testing.T) {
	t.Parallel()
	direct, pooled := ownDatabase(t)
	cfg, err := pgx.ParseConfig(pooled.Source)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tracer = tracer{}
	db := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = db.Close() })
	inEverySession(t, pooled.Pool(t), slices.Concat(
		neighbours["serializable, and nothing may be written"],
		neighbours["commits that wait for no disk"]))
	if err := settings.ConformPinned(t.Context(), db, pooled, direct); err != nil {
		t.Error(err)
	}
	if got := told(t, direct); got != "read committed, on, 1s, 5s" {
		t.Errorf("commits were %s", got)
	}
}

type tracer struct{}

func (tracer) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData,
) context.Context {
	return ctx
}

func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// ownDatabase is one that no other test has, because sessions of the pooler keep what is set in
// them. The server notes how each transaction of a pinned connection is committed.
func ownDatabase(t *testing.T) (direct, pooled *testdb.Env) {
	t.Helper()
	testdb.PgBouncer.DSN(t) // skips, before there is a database
	kind := testdb.Kinds[1]
	direct = &testdb.Env{Kind: kind, Source: testdb.OwnDatabase(t), Dialect: kind.New()}
	pooled = &testdb.Env{
		Kind: testdb.PgBouncer, Source: testdb.ThroughPgBouncer(t, direct.Source) + "&application_name=shared", Dialect: testdb.PgBouncer.New(),
	}
	direct.DB, pooled.DB = direct.Pool(t), pooled.Pool(t)
	if err := schema.Migrate(t.Context(), direct.DB, direct.Dialect); err != nil {
		t.Fatal(err)
	}
	watch(t, direct)
	// A neighbour's role may not even name the tables.
	direct.Exec(t, `REVOKE USAGE ON SCHEMA public FROM PUBLIC`)
	return direct, pooled
}

var serial atomic.Int64

// watch has the server note the settings of each transaction that changes a table of pinned
// connections, when it is committed.
func watch(t *testing.T, e *testdb.Env) {
	t.Helper()
	e.Exec(t, `CREATE TABLE told (what text PRIMARY KEY)`)
	e.Exec(t, `CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('application_name') <> 'shared' THEN RETURN NULL; END IF; -- the rival
		INSERT INTO told VALUES (concat_ws(', ',
			current_setting('transaction_isolation'), current_setting('synchronous_commit'),
			current_setting('lock_timeout'), current_setting('statement_timeout'))) ON CONFLICT DO NOTHING; RETURN NULL; END $$`)
	for _, table := range []string{
		"rowlock", "rowlock_floor", "rowlock_member", "rowlock_limit", "rowlock_forced", "rowlock_latch",
		"rowlock_party",
	} {
		e.Exec(t, `CREATE CONSTRAINT TRIGGER tell AFTER INSERT OR UPDATE ON `+table+`
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tell()`)
	}
}

// told is what the server has noted, which it forgets.
func told(t *testing.T, e *testdb.Env) (all string) {
	t.Helper()
	err := e.DB.QueryRowContext(t.Context(), `WITH gone AS (DELETE FROM told RETURNING *)
		SELECT coalesce(string_agg(what, '; '), '') FROM gone`).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sessions is how many the pooler has for a database.
const sessions = 4

// inEverySession runs statements in each session of the pooler: as many transactions are open at
// once as there are.
func inEverySession(t *testing.T, db *sql.DB, statements []string) (set map[int]bool) {
	t.Helper()
	set = make(map[int]bool)
	for _, tx := range everySession(t, db) {
		set[backend(t, tx)] = true
		for _, set := range append([]string{
			`DISCARD PLANS`, `RESET SESSION AUTHORIZATION`, `RESET ALL`, `RESET ROLE`,
		}, statements...) {
			if _, err := tx.ExecContext(context.Background(), set); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

// backend is the server's process of a session.
func backend(t *testing.T, tx *sql.Tx) (pid int) {
	t.Helper()
	if err := tx.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

func everySession(t *testing.T, db *sql.DB) (all []*sql.Tx) {
	t.Helper()
	for range sessions {
		// READ WRITE, which a neighbour of before may have forbidden, comes with BEGIN.
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tx)
	}
	return all
}

// leftBehind returns which of the settings a session of those in set has no more. The pooler opens
// another in place of one that a client has left in a transaction, as after a timeout.
func leftBehind(t *testing.T, db *sql.DB, in map[int]bool, statements []string) (lost string) {
	t.Helper()
	for _, tx := range everySession(t, db) {
		ours := in[backend(t, tx)]
		for _, set := range statements {
			name, value, ok := strings.Cut(strings.TrimPrefix(set, "SET "), " = ")
			var now string
			if !ok {
				continue
			}
			err := tx.QueryRowContext(t.Context(), `SELECT current_setting($1)`, name).Scan(&now)
			if err != nil {
				t.Fatal(err)
			}
			if ours && strings.TrimSuffix(now, "ms") != strings.Trim(value, "'") {
				lost += fmt.Sprintf("%s is %s ", name, now)
			}
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	return lost
}
