package mysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	driving "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// server is a MySQL or MariaDB with rowlock's tables, and connections to it.
type server struct {
	*testdb.Env
	testing.TB
}

// onBoth runs f on MySQL and on MariaDB.
func onBoth(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	for _, k := range testdb.Kinds {
		if k.Driver == "mysql" {
			t.Run(k.Name, func(t *testing.T) { f(t, &server{k.Open(t), t}) })
		}
	}
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

// as returns a pool whose user is new and has the privileges.
func (s *server) as(options string, grants ...string) *sql.DB {
	s.Helper()
	cfg, err := driving.ParseDSN(s.Source)
	if err != nil {
		s.Fatal(err)
	}
	cfg.User, cfg.Passwd = fmt.Sprintf("rl_%d_%s", os.Getpid()%100000, s.Dialect.Names().Prefix), "secret"
	cfg.User = strings.TrimRight(cfg.User[:min(30, len(cfg.User))], "_")
	s.Exec(s, `CREATE USER `+cfg.User+` IDENTIFIED BY 'secret' `+options)
	for _, g := range grants {
		s.Exec(s, `GRANT `+g+` TO `+cfg.User)
	}
	cfg.DBName = ""
	if len(grants) > 0 {
		cfg.DBName = mustParse(s, s.Source).DBName
	}
	pool, err := sql.Open(s.Driver, cfg.FormatDSN())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = pool.Close()
		s.Exec(s, `DROP USER `+cfg.User)
	})
	return pool
}

func mustParse(tb testing.TB, dsn string) *driving.Config {
	tb.Helper()
	cfg, err := driving.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

// two sets up two rows and returns two connections.
func (s *server) two() (a, b *sql.Conn) {
	a, b = s.conn(s.DB), s.conn(s.DB)
	s.must(a, `DELETE FROM {rowlock}`, "INSERT INTO {rowlock} (`key`, token, acquired_at, expires_at) VALUES ('a', 1, NOW(), NOW()), ('b', 1, NOW(), NOW())")
	return a, b
}

const (
	updateA = "UPDATE {rowlock} SET token = token + 1 WHERE `key` = 'a'"
	updateB = "UPDATE {rowlock} SET token = token + 1 WHERE `key` = 'b'"
	strict  = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"
)

func (s *server) maria() bool { return s.Kind.Name == "mariadb" }

// Each class of error, provoked on a real server. The numbers are MySQL's and MariaDB's; 0 means
// that the server has no such error, and gone that the connection was lost and with it the number.
var provoked = []struct {
	name         string
	mysql, maria uint16
	class        sqlstore.Class
	as           error
	provoke      func(s *server) error
}{
	{"lock wait timeout", 1205, 1205, sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		return s.run(b, `SET SESSION innodb_lock_wait_timeout = 1`, updateA)
	}},
	{"deadlock", 1213, 1213, sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		s.must(b, `BEGIN`, updateB)
		other := make(chan error, 1)
		go func() { other <- s.run(a, updateB); _ = s.run(a, `ROLLBACK`) }()
		err := s.run(b, updateA)
		_ = s.run(b, `ROLLBACK`)
		return errors.Join(err, <-other) // one of the two was chosen
	}},
	{"record changed since last read", 0, 1020, sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `SET SESSION innodb_snapshot_isolation = ON`, `SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ`,
			`START TRANSACTION WITH CONSISTENT SNAPSHOT`)
		s.must(b, updateA)
		return s.run(a, updateA)
	}},
	{"NOWAIT", 3572, 1205, sqlstore.Conflict, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		return s.run(b, "SELECT 1 FROM {rowlock} WHERE `key` = 'a' FOR UPDATE NOWAIT")
	}},
	{"duplicate key", 1062, 1062, sqlstore.Conflict, nil, func(s *server) error {
		a, _ := s.two()
		return s.run(a, "INSERT INTO {rowlock} (`key`, token, acquired_at, expires_at) VALUES ('a', 1, NOW(), NOW())")
	}},
	{"read-only transaction", 1792, 1792, sqlstore.Unfit, lease.ErrReadOnly, func(s *server) error {
		return s.run(s.conn(s.DB), `START TRANSACTION READ ONLY`, updateA)
	}},
	{"refused by an option of the server", 1290, 1290, sqlstore.Unfit, lease.ErrReadOnly, func(s *server) error {
		if s.maria() {
			return &driving.MySQLError{Number: 1290} // read_only is global, and this server is shared
		}
		return s.run(s.conn(s.DB), `SELECT 1 INTO OUTFILE '/nosuch/file'`)
	}},
	{"unknown prepared statement", 1243, 1243, sqlstore.Unfit, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `EXECUTE nosuch`)
	}},
	{"missing table", 1146, 1146, sqlstore.Refused, lease.ErrNoSchema, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT 1 FROM nosuch_rowlock`)
	}},
	{"missing database", 1049, 1049, sqlstore.Refused, lease.ErrNoSchema, func(s *server) error {
		return s.run(s.conn(s.DB), `USE nosuch_rowlock`)
	}},
	{"missing column", 1054, 1054, sqlstore.Refused, lease.ErrSchemaVersion, func(s *server) error {
		return s.run(s.conn(s.DB), `SELECT nosuch FROM {rowlock}`)
	}},
	{"no access to the database", 1044, 1044, sqlstore.Refused, lease.ErrPrivilege, func(s *server) error {
		return s.run(s.conn(s.as(``)), `USE `+mustParse(s, s.Source).DBName)
	}},
	{"missing privilege on the table", 1142, 1142, sqlstore.Refused, lease.ErrPrivilege, func(s *server) error {
		return s.run(s.conn(s.as(``, `SELECT ON {rowlock}`)), updateA)
	}},
	{"missing privilege on a column", 1143, 1143, sqlstore.Refused, lease.ErrPrivilege, func(s *server) error {
		return s.run(s.conn(s.as(``, "SELECT, UPDATE (note) ON {rowlock}")), updateA)
	}},
	{"the era of another server", 1690, 1690, sqlstore.Unfit, nil, func(s *server) error {
		a, _ := s.two()
		return s.run(a, `UPDATE {rowlock} SET token = GREATEST(token, IF(@@server_id = 0, 5, 9223372036854775807)) + 1`)
	}},
	{"token out of range", 1690, 1690, sqlstore.Refused, lease.ErrTokenExhausted, func(s *server) error {
		a, _ := s.two()
		return s.run(a, `UPDATE {rowlock} SET token = 9223372036854775807`, updateA)
	}},
	{"check constraint", 3819, 4025, sqlstore.Refused, lease.ErrCorrupt, func(s *server) error {
		a, _ := s.two()
		return s.run(a, `UPDATE {rowlock_meta} SET start = -1`)
	}},
	{"data too long", 1406, 1406, sqlstore.Refused, lease.ErrCorrupt, func(s *server) error {
		a, _ := s.two()
		return s.run(a, strict, `UPDATE {rowlock} SET note = REPEAT('x', 385)`)
	}},
	{"syntax", 1064, 1064, sqlstore.Refused, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `SELEKT`)
	}},
	{"query killed", 1317, 1317, sqlstore.Unknown, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		return s.kill(b, "QUERY", `SET SESSION innodb_lock_wait_timeout = 50`, updateA)
	}},
	{"connection killed", gone, gone, sqlstore.Unknown, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		return s.kill(b, "CONNECTION", `SET SESSION innodb_lock_wait_timeout = 50`, updateA)
	}},
	{"statement timeout", 0, 1969, sqlstore.Unknown, nil, func(s *server) error {
		a, b := s.two()
		s.must(a, `BEGIN`, updateA)
		return s.run(b, `SET SESSION max_statement_time = 0.05, innodb_lock_wait_timeout = 50`, updateA)
	}},
	{"raised", 1644, 1644, sqlstore.Refused, sqlstore.ErrRaised, func(s *server) error {
		return s.run(s.conn(s.DB), `SIGNAL SQLSTATE '45000'`)
	}},
	{"raised with a number", 4711, 4711, sqlstore.Refused, sqlstore.ErrRaised, func(s *server) error {
		return s.run(s.conn(s.DB), `SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 4711`)
	}},
	{"any other error", 4711, 4711, sqlstore.Unknown, nil, func(s *server) error {
		return s.run(s.conn(s.DB), `SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 4711`)
	}},
}

// gone stands for a connection that ended without a word.
const gone = 1

// kill has the last of the queries killed while it waits on c.
func (s *server) kill(c *sql.Conn, what string, queries ...string) error {
	s.Helper()
	var id int64
	if err := c.QueryRowContext(s.Context(), `SELECT CONNECTION_ID()`).Scan(&id); err != nil {
		s.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { result <- s.run(c, queries...) }()
	// Not by its text: the list has those of other sessions too, and cannot convert one with
	// bytes in it.
	running := `SELECT COUNT(*) FROM information_schema.processlist WHERE id = ? AND command IN ('Query', 'Execute') AND time_ms > 50`
	if !s.maria() {
		running = `SELECT COUNT(*) FROM performance_schema.threads WHERE processlist_id = ? AND processlist_state = 'updating'`
	}
	for n := 0; n == 0; time.Sleep(time.Millisecond) {
		if err := s.DB.QueryRowContext(s.Context(), running, id).Scan(&n); err != nil {
			s.Fatal(err)
		}
	}
	s.Exec(s, fmt.Sprintf(`KILL %s %d`, what, id))
	return <-result
}

func TestErrorsOfARealServerAreClassified(t *testing.T) {
	onBoth(t, func(t *testing.T, whole *server) {
		for _, p := range provoked {
			want := p.mysql
			if whole.maria() {
				want = p.maria
			}
			if want == 0 {
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				s := &server{whole.Env, t}
				err := p.provoke(s)
				var my *driving.MySQLError
				if errors.As(err, &my) {
					if my.Number != want && want != gone {
						t.Fatalf("provoked %v, want %d", err, want)
					}
				} else if err == nil || want != gone {
					t.Fatalf("provoked %v, want %d", err, want)
				}
				wantVerdict(t, s.Dialect, err, p.class, p.as)
				wantVerdict(t, s.Dialect, fmt.Errorf("wrapped: %w", err), p.class, p.as)
				if v := sqlstore.Judge(s.Dialect, conn.NotSent{Err: err}); v.Class == sqlstore.Unknown {
					t.Errorf("an error before anything was sent is %s", v.Class)
				}
			})
		}
	})
}

// A connection that could not be made carried nothing.
func TestAConnectionThatIsRefusedIsWorthAnother(t *testing.T) {
	onBoth(t, func(t *testing.T, s *server) {
		pool := s.as(`WITH MAX_USER_CONNECTIONS 1`)
		s.conn(pool)
		err := pool.PingContext(t.Context())
		if v := sqlstore.Judge(s.Dialect, conn.NotSent{Err: err}); err == nil || v.Class != sqlstore.Unfit || !v.Class.Retry() || v.Class.Good() {
			t.Errorf("%v is %s", err, v.Class)
		}
	})
}

func wantVerdict(t testing.TB, d *sqlstore.Dialect, err error, class sqlstore.Class, as error) {
	t.Helper()
	if v := d.Classify(err); v.Class != class || v.As != as {
		t.Errorf("%v is %s, %v; want %s, %v", err, v.Class, v.As, class, as)
	}
}

// What the classifier is to know. Every other number, and every error without one, may come from a
// statement that was applied.
var definite = []uint16{
	1205, 1213, 1020, 3572, 1062, 1040, 1290, 1792, 1836, 1243, 1615, 1461,
	3098, 3796, 3797, 3799,
	1146, 1049, 1054, 1044, 1227, 1142, 1143, 1690, 3819, 4025, 1406, 1064,
	1048, 1264, 1292, 1441, 1153, 1305, 1419, 1644,
}

func TestAnErrorThatIsNotKnownLeavesTheOutcomeUnknown(t *testing.T) {
	d := sqlstore.Of(mysql.New())
	for _, err := range []error{
		errors.New("anything"), io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, context.Canceled,
		context.DeadlineExceeded, os.ErrDeadlineExceeded, driving.ErrInvalidConn, driving.ErrMalformPkt,
	} {
		wantVerdict(t, d, err, sqlstore.Unknown, nil)
	}
	for n := range 1 << 16 {
		v := d.Classify(&driving.MySQLError{Number: uint16(n)})
		if known := slices.Contains(definite, uint16(n)); known != (v.Class != sqlstore.Unknown) {
			t.Errorf("error %d is %s", n, v.Class)
		}
	}
}

func TestATemporaryTableThatTheServerHasLostIsNoneOfOurs(t *testing.T) {
	d := sqlstore.Of(mysql.New())
	if v := d.Classify(&driving.MySQLError{Number: 1146, Message: "Table './var/tmp/#sql59c4_7f4_7' doesn't exist"}); v.Class != sqlstore.Refused || !errors.Is(v.As, lease.ErrConfig) || !strings.Contains(v.As.Error(), "temptable_max_ram") {
		t.Errorf("it is %s, %v", v.Class, v.As)
	}
	wantVerdict(t, d, &driving.MySQLError{Number: 1146, Message: "Table 'app.rowlock' doesn't exist"}, sqlstore.Refused, lease.ErrNoSchema)
}

// FuzzClassify: what an error means is decided by its number. Its text may quote a key or a note,
// but for 1146, which names a table, and 1690, which has the overflowing expression.
func FuzzClassify(f *testing.F) {
	for _, n := range definite {
		f.Add(n, "Duplicate entry 'k' for key 'PRIMARY'")
	}
	f.Add(uint16(1053), "Deadlock found")
	d := sqlstore.Of(mysql.New())
	f.Fuzz(func(t *testing.T, number uint16, text string) {
		v := d.Classify(fmt.Errorf("acquire: %w", &driving.MySQLError{Number: number, Message: text}))
		if number != 1146 && number != 1690 && v != d.Classify(&driving.MySQLError{Number: number}) {
			t.Errorf("%d with %q is %+v", number, text, v)
		}
		if !slices.Contains(definite, number) && v != (sqlstore.Verdict{}) || d.Classify(errors.New(text)) != (sqlstore.Verdict{}) {
			t.Errorf("%d with %q is %+v", number, text, v)
		}
	})
}
