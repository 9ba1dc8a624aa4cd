package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"testing"
	"testing/quick"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// server is a Postgres with rowlock's tables, and connections to it.
type server struct {
	*testdb.Env
	testing.TB
}

func newServer(t testing.TB) *server {
	i := slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool { return k.Name == "postgres" })
	return &server{testdb.Kinds[i].Open(t), t}
}

func (s *server) conn(pool *sql.DB) *sql.Conn {
	s.Helper()
	c, err := pool.Conn(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	// No other test should get its settings.
	s.Cleanup(func() { _ = c.Raw(func(any) error { return driver.ErrBadConn }) })
	return c
}

// run executes statements in order and returns the first error.
func (s *server) run(c *sql.Conn, queries ...string) error {
	for _, q := range queries {
		if _, err := c.ExecContext(s.Context(), s.SQL(q)); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) must(c *sql.Conn, queries ...string) {
	s.Helper()
	if err := s.run(c, queries...); err != nil {
		s.Fatal(err)
	}
}

// as returns a pool whose user is a new role.
func (s *server) as(options string) *sql.DB {
	s.Helper()
	role := fmt.Sprintf("rowlock_test_%d_%s", os.Getpid(), s.Dialect.Names().Prefix)
	s.Exec(s, `CREATE ROLE `+role+` LOGIN `+options)
	u, err := url.Parse(s.Source)
	if err != nil {
		s.Fatal(err)
	}
	u.User = url.User(role)
	pool, err := sql.Open(s.Driver, u.String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = pool.Close()
		s.Exec(s, `DROP ROLE `+role)
	})
	return pool
}

// two sets up two rows and returns two connections.
func (s *server) two() (a, b *sql.Conn) {
	a, b = s.conn(s.DB), s.conn(s.DB)
	s.must(a, `DELETE FROM {rowlock}`, `INSERT INTO {rowlock} (key, token, acquired_at, expires_at) VALUES ('a', 1, now(), now()), ('b', 1, now(), now())`)
	return a, b
}

const (
	updateA = `UPDATE {rowlock} SET token = token + 1 WHERE key = 'a'`
	updateB = `UPDATE {rowlock} SET token = token + 1 WHERE key = 'b'`
)

// Each class of error, provoked on a real server.
var provoked = []struct {
	name, code string
	class      sqlstore.Class
	as         error
	provoke    func(s *server) error
}{
	{"serialization failure", "40001", sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT 1`, `SELECT count(*) FROM {rowlock}`)
		s.must(b, updateA)
		return s.run(a, updateA)
	}},
	{"deadlock", "40P01", sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		s.must(b, `BEGIN`, updateB)
		other := make(chan error, 1)
		go func() { other <- s.run(a, updateB); _ = s.run(a, `ROLLBACK`) }()
		err := s.run(b, updateA)
		_ = s.run(b, `ROLLBACK`)
		return errors.Join(err, <-other) // one of the two was chosen
	}},
	{"lock timeout", "55P03", sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		defer s.must(a, `ROLLBACK`)
		return s.run(b, `BEGIN`, `SET LOCAL lock_timeout = 20`, updateA)
	}},
	{"NOWAIT", "55P03", sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		defer s.must(a, `ROLLBACK`)
		return s.run(b, `SELECT 1 FROM {rowlock} FOR UPDATE NOWAIT`)
	}},
	{"statement timeout", "57014", sqlstore.Conflict, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `BEGIN`, `SET LOCAL statement_timeout = 20`, `SELECT pg_sleep(10)`)
	}},
	{"too many connections", "53300", sqlstore.Conflict, nil, func(s *server) error {
		pool := s.as(`CONNECTION LIMIT 1`)
		s.conn(pool)
		return pool.PingContext(s.Context())
	}},
	{"read-only transaction", "25006", sqlstore.Unfit, lease.ErrReadOnly, func(s *server) error {
		return s.run(s.conn(s.DB), `BEGIN READ ONLY`, updateA)
	}},
	{"missing table", "42P01", sqlstore.Refused, lease.ErrNoSchema, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT 1 FROM nosuch_rowlock`)
	}},
	{"missing schema", "3F000", sqlstore.Refused, lease.ErrNoSchema, func(s *server) error {
		return s.run(s.conn(s.DB), `CREATE TABLE nosuch_schema.t ()`)
	}},
	{"missing column", "42703", sqlstore.Refused, lease.ErrSchemaVersion, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT nosuch FROM {rowlock}`)
	}},
	{"missing privilege", "42501", sqlstore.Refused, lease.ErrPrivilege, func(s *server) error {
		return s.run(s.conn(s.as(``)), updateA)
	}},
	{"the era of another server", "22P02", sqlstore.Unfit, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT (CASE pg_postmaster_start_time() WHEN now() THEN '5' ELSE 'rowlock: this is another server' END)::bigint`)
	}},
	{"token out of range", "22003", sqlstore.Refused, lease.ErrTokenExhausted, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT 9223372036854775807 + 1::bigint`)
	}},
	{"check constraint", "23514", sqlstore.Refused, lease.ErrCorrupt, func(s *server) error {
		a, _ := s.two()
		return s.run(a, `UPDATE {rowlock_meta} SET start = -1`)
	}},
	{"duplicate key", "23505", sqlstore.Refused, lease.ErrCorrupt, func(s *server) error {
		a, _ := s.two()
		return s.run(a, `INSERT INTO {rowlock} (key, token, acquired_at, expires_at) VALUES ('a', 1, now(), now())`)
	}},
	{"not null", "23502", sqlstore.Refused, lease.ErrCorrupt, func(s *server) error {
		return s.run(s.conn(s.DB), `INSERT INTO {rowlock} (key) VALUES ('a')`)
	}},
	{"bad data", "22P02", sqlstore.Refused, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT 'x'::bigint`)
	}},
	{"syntax", "42601", sqlstore.Refused, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `SELEKT`)
	}},
	{"failed transaction", "25P02", sqlstore.Refused, nil, func(s *server) error {
		c := s.conn(s.DB)
		s.must(c, `BEGIN`)
		_ = s.run(c, `SELEKT`)
		return s.run(c, `SELECT 1`)
	}},
	{"prepared statement there already", "42P05", sqlstore.Unfit, lease.ErrConfig, func(s *server) error {
		c := s.conn(s.DB)
		s.must(c, `PREPARE twice AS SELECT 1`)
		return s.run(c, `PREPARE twice AS SELECT 1`)
	}},
	{"prepared statement gone", "26000", sqlstore.Unfit, lease.ErrConfig, func(s *server) error {
		c := s.conn(s.DB)
		stmt, err := c.PrepareContext(s.Context(), `SELECT $1::int`)
		if err != nil {
			return err
		}
		defer stmt.Close()
		s.must(c, `DEALLOCATE ALL`)
		_, err = stmt.ExecContext(s.Context(), 1)
		return err
	}},
	{"cached plan", "0A000", sqlstore.Unfit, nil, func(s *server) error {
		c := s.conn(s.DB)
		stmt, err := c.PrepareContext(s.Context(), s.SQL(`SELECT * FROM {rowlock} WHERE token = $1`))
		if err != nil {
			return err
		}
		defer stmt.Close()
		if _, err := stmt.ExecContext(s.Context(), 1); err != nil {
			return err
		}
		s.must(c, `ALTER TABLE {rowlock} ADD COLUMN more int`)
		_, err = stmt.ExecContext(s.Context(), 1)
		return err
	}},
	{"what remains of a lease without an end", "22008", sqlstore.Refused, lease.ErrCorrupt, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT 'infinity'::timestamptz - clock_timestamp()`)
	}},
	{"an infinite time as a number", "0A000", sqlstore.Refused, lease.ErrCorrupt, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT extract(epoch FROM 'infinity'::timestamptz)::bigint`)
	}},
	{"connection killed", "57P01", sqlstore.Unknown, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT pg_terminate_backend(pg_backend_pid())`)
	}},
	{"raised", "P0001", sqlstore.Refused, sqlstore.ErrRaised, func(s *server) error {
		return s.run(s.conn(s.DB), `DO $$ BEGIN RAISE 'something else'; END $$`)
	}},
	{"raised at COMMIT", "P0001", sqlstore.Refused, sqlstore.ErrRaised, func(s *server) error {
		c := s.conn(s.DB)
		s.must(c, `CREATE TEMP TABLE late (n int)`)
		s.must(c, `CREATE FUNCTION pg_temp.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too late'; END $$`)
		s.must(c, `CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION pg_temp.no()`)
		s.must(c, `BEGIN`)
		s.must(c, `INSERT INTO late VALUES (1)`)
		err := s.run(c, `COMMIT`)
		var rows int
		if e := c.QueryRowContext(s.Context(), `SELECT count(*) FROM late`).Scan(&rows); e != nil || rows != 0 {
			s.Errorf("%d rows were committed, %v", rows, e)
		}
		return err
	}},
	{"any other error", "XX000", sqlstore.Unknown, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `DO $$ BEGIN RAISE 'something else' USING ERRCODE = 'XX000'; END $$`)
	}},
}

func TestErrorsOfARealServerAreClassified(t *testing.T) {
	whole := newServer(t)
	for _, p := range provoked {
		t.Run(p.name, func(t *testing.T) {
			s := &server{whole.Env, t}
			err := p.provoke(s)
			var state interface{ SQLState() string }
			if !errors.As(err, &state) || state.SQLState() != p.code {
				t.Fatalf("provoked %v, want SQLSTATE %s", err, p.code)
			}
			wantVerdict(t, s.Dialect, err, p.class, p.as)
			wantVerdict(t, s.Dialect, fmt.Errorf("wrapped: %w", err), p.class, p.as)
			if v := sqlstore.Judge(s.Dialect, conn.NotSent{Err: err}); v.Class == sqlstore.Unknown {
				t.Errorf("an error before anything was sent is %s", v.Class)
			}
		})
	}
}

func wantVerdict(t testing.TB, d *sqlstore.Dialect, err error, class sqlstore.Class, as error) {
	t.Helper()
	if v := d.Classify(err); v.Class != class || !errors.Is(v.As, as) {
		t.Errorf("%v is %s, %v; want %s, %v", err, v.Class, v.As, class, as)
	}
}

// state is an error with any SQLSTATE, as pgx and lib/pq have them.
type state string

func (s state) Error() string    { return "SQLSTATE " + string(s) }
func (s state) SQLState() string { return string(s) }

// Everything that is not known to mean something else may have been applied.
var definite = []string{
	"40001", "40P01", "55P03", "57014", "25006", "57P03", "42P01", "3F000", "42703", "42501", "22003", "26000", "0A000", "25P02", "42P05",
	"53", "23", "22", "42", "P0",
}

func isDefinite(code string) bool {
	return slices.Contains(definite, code) || len(code) >= 2 && slices.Contains(definite, code[:2])
}

func TestAnErrorThatIsNotKnownLeavesTheOutcomeUnknown(t *testing.T) {
	d := sqlstore.Of(postgres.New())
	for _, err := range []error{
		errors.New("anything"), io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, context.Canceled,
		context.DeadlineExceeded, os.ErrDeadlineExceeded, state(""), state("0"), state("00000"), state("08006"), state("57P01"), state("57P02"), state("XX000"), state("58030"),
	} {
		wantVerdict(t, d, err, sqlstore.Unknown, nil)
	}
	unknown := func(code string) bool { return isDefinite(code) || d.Classify(state(code)).Class == sqlstore.Unknown }
	if err := quick.Check(unknown, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	five := func(a, b, c, d, e byte) bool {
		return unknown(string([]byte{letters[a%36], letters[b%36], letters[c%36], letters[d%36], letters[e%36]}))
	}
	if err := quick.Check(five, &quick.Config{MaxCount: 100_000}); err != nil {
		t.Error(err)
	}
}

func FuzzClassify(f *testing.F) {
	for _, code := range definite {
		f.Add(code)
	}
	f.Add("57P01")
	d := sqlstore.Of(postgres.New())
	f.Fuzz(func(t *testing.T, code string) {
		v := d.Classify(state(code))
		if !isDefinite(code) && v != (sqlstore.Verdict{}) {
			t.Errorf("%q is %+v", code, v)
		}
		_, _, _ = v.Class.Retry(), v.Class.Good(), v.Class.String()
	})
}
