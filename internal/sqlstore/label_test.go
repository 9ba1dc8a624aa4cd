package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// labeled are calls and the section that each runs last, by dialect.
var labeled = []struct {
	call string
	do   func(context.Context, *sqlstore.Dialect, *conn.Session, lease.Lease) error
	last map[string]string
}{
	{"Acquire of a key without a row", acquires, last("acquire-any", "acquire-insert", "acquire-insert")},
	{"Acquire of a held key", loses, last("acquire-any", "look", "look")},
	{"Renew", renews, last("renew", "renew", "renew")},
	{"Release", releases, last("release", "release", "release")},
	{"Acquire of a free key", acquires, last("acquire-update", "acquire-update", "acquire-update")},
	{"QueuePositions", places, last("places", "places", "places")},
}

func last(postgres, mysql, sqlite string) map[string]string {
	return map[string]string{"postgres": postgres, "mysql": mysql, "sqlite": sqlite}
}

func acquires(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, l lease.Lease) error {
	r := lease.AcquireRequest{Key: l.Key, Owner: l.Owner, TTL: time.Minute}
	a, err := d.Acquire(ctx, s, adapter.Update, r)
	if err == nil && !a.Granted {
		err = fmt.Errorf("not granted: %+v", a)
	}
	return err
}

func loses(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, l lease.Lease) error {
	r := lease.AcquireRequest{Key: l.Key, Owner: lease.NewOwner(), TTL: time.Minute}
	a, err := d.Acquire(ctx, s, adapter.Update, r)
	if err == nil && a.Granted {
		err = fmt.Errorf("granted: %+v", a)
	}
	return err
}

func renews(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, l lease.Lease) error {
	l.Token = 1
	_, err := d.Renew(ctx, s, []lease.RenewRequest{{Lease: l, TTL: time.Minute}})
	return err
}

func releases(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, l lease.Lease) error {
	_, err := d.Release(ctx, s, l)
	return err
}

func places(ctx context.Context, d *sqlstore.Dialect, s *conn.Session, l lease.Lease) error {
	_, err := d.QueuePositions(ctx, s, []lease.Lease{l})
	return err
}

func TestTheServerKnowsEachStatementByItsName(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("SQLite has no server")
		}
		known := knownTo(t, e)
		knowsNames(t, e, session(t, e), known)
	})
}

func TestTheServerBehindAPoolerKnowsEachStatementByItsName(t *testing.T) {
	for _, k := range testdb.Kinds {
		if k.Name == "postgres" {
			e := k.Open(t)
			b := e.Behind(t)
			knowsNames(t, b, session(t, b), knownTo(t, e))
		}
	}
}

// knowsNames makes each call, and looks for its last statement's label in what the server knows.
func knowsNames(t *testing.T, e *testdb.Env, s *conn.Session, known func() []string) {
	l := lease.Lease{Key: "k", Owner: lease.NewOwner()}
	for _, c := range labeled {
		if err := c.do(t.Context(), e.Dialect, s, l); err != nil {
			t.Fatal(c.call, err)
		}
		label := " /* rowlock " + c.last[e.Dialect.Name()] + " */"
		has := func(text string) bool { return strings.Contains(text, label) }
		var texts []string
		// A server may answer first and log afterwards.
		for began := time.Now(); !slices.ContainsFunc(texts, has) && time.Since(began) < 5*time.Second; {
			time.Sleep(time.Millisecond)
			texts = known()
		}
		if !slices.ContainsFunc(texts, has) {
			t.Errorf("after %s the server knows no%s, but %q", c.call, label, texts)
		}
	}
}

func session(t *testing.T, e *testdb.Env) *conn.Session {
	pinned, err := e.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := conn.NewSession(pinned)
	s.EraAt(0)
	t.Cleanup(s.Discard)
	if err := e.Dialect.Setup(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	slow := map[string]string{
		"mysql":   `SET SESSION long_query_time = 0`,
		"mariadb": `SET SESSION slow_query_log = 1, long_query_time = 0, log_slow_filter = ''`,
	}
	if set := slow[e.Name]; set != "" {
		if _, err := pinned.ExecContext(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// knownTo returns what the server tells its operator of the statements on e's tables: in
// pg_stat_activity, or in the slow log and in performance_schema where that is on.
func knownTo(t *testing.T, e *testdb.Env) func() []string {
	admin := e.Pool(t)
	table := "%" + e.Dialect.Names().Prefix + "%"
	if e.Driver == "pgx" {
		return func() []string {
			// Behind a pooler a statement's transaction ends with its label too.
			return texts(t, admin, `SELECT query FROM pg_stat_activity
				WHERE query LIKE $1 OR query LIKE 'COMMIT%'`, table)
		}
	}
	slowLog(t, admin)
	var schema bool
	if err := admin.QueryRowContext(t.Context(), `SELECT @@performance_schema`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	return func() []string {
		slow := texts(t, admin, `SELECT sql_text FROM mysql.slow_log WHERE sql_text LIKE ?`, table)
		if !schema {
			return slow
		}
		// A text must be in both.
		events := texts(t, admin,
			`SELECT SQL_TEXT FROM performance_schema.events_statements_history WHERE SQL_TEXT LIKE ?`, table)
		var both []string
		for _, text := range slow {
			label := labelOf(text)
			if slices.ContainsFunc(events, func(event string) bool { return labelOf(event) == label }) {
				both = append(both, text)
			}
		}
		return both
	}
}

// labelOf returns the name in a text's label, or "".
func labelOf(text string) string {
	_, rest, _ := strings.Cut(text, " /* rowlock ")
	name, _, _ := strings.Cut(rest, " */")
	return name
}

// slowLog has the server log every statement of sessions that ask for it to a table.
func slowLog(t *testing.T, admin *sql.DB) {
	var on bool
	var output string
	now := admin.QueryRowContext(t.Context(), `SELECT @@GLOBAL.slow_query_log, @@GLOBAL.log_output`)
	if err := now.Scan(&on, &output); err != nil {
		t.Fatal(err)
	}
	set := func(on bool, output string) {
		to := fmt.Sprintf(`SET GLOBAL slow_query_log = %t, GLOBAL log_output = '%s'`, on, output)
		if _, err := admin.ExecContext(context.Background(), to); err != nil {
			t.Error(err)
		}
	}
	set(true, "TABLE")
	t.Cleanup(func() { set(on, output) })
}

func texts(t *testing.T, db *sql.DB, query string, args ...any) (out []string) {
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
