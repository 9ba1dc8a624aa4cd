package doctor_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

func TestAPoolerInTransactionModeIsFound(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	servertest.On(t, "postgres", func(e *servertest.Scene) {
		s := durable(&servertest.Scene{T: e.T, Env: testdb.InOwnDatabase(e)})
		pooled := s.Env.Behind(s)
		behind := scene{&servertest.Scene{T: s.T, Env: pooled}}
		unaware := *pooled
		unaware.Dialect = s.Env.Dialect
		scene{&servertest.Scene{T: s.T, Env: &unaware}}.wants(doctor.Critical, "pooler",
			"transaction mode", "postgres.Pooled()", "pg_backend_pid")
		behind.wants(doctor.Info, "pooler", "transaction mode", "postgres.Listen")
		if r := behind.examine(quick()); r.Worst > doctor.Info {
			s.Errorf("a healthy server behind a pooler: %+v", r.Findings)
		}
		s.wants(doctor.OK, "pooler")
		s.leftBehind(behind)
	})
}

// leftBehind leaves a setting in the sessions that clients share.
func (s scene) leftBehind(behind scene) {
	s.Helper()
	for range 8 {
		behind.Exec(behind.Env.DB, `SET statement_timeout = '3s'`)
	}
	behind.wants(doctor.Warning, "pooler", "statement_timeout = 3s", "server_reset_query_always")
	s.Eventually("the settings to be gone", func() bool {
		for range 8 {
			behind.Exec(behind.Env.DB, `RESET statement_timeout`)
		}
		return behind.finding("pooler").Severity == doctor.Info
	})
}

// A server on Windows has every name of a table in small letters.
func TestTablesWithAPrefixInCapitalsAreFoundInSmallLetters(t *testing.T) {
	t.Parallel()
	a := standby.MakeAlone(t, "mariadb", []string{"--lower-case-table-names=1"})
	s := scene{&servertest.Scene{T: t}}
	d := mysql.New(dialect.Prefix("App_"))
	s.OK(schema.Migrate(t.Context(), a.DB, d))
	r := s.examineOn(a.DB, d, quick("schema", "tables", "privileges", "open"))
	if len(r.Findings) != 4 || r.Worst > doctor.Info {
		t.Errorf("found %+v", r.Findings)
	}
}

// A primary of the test's own, with a standby for which no commit waits.
func TestWhatAPrimaryAndItsStandbyLackIsFound(t *testing.T) {
	t.Parallel()
	pair := standby.StartAsynchronous(t)
	d := postgres.New()
	s := scene{&servertest.Scene{T: t}}
	s.OK(schema.Migrate(t.Context(), pair.DB, d))
	becomes := func(severity doctor.Severity, id, says string, statements ...string) {
		t.Helper()
		for _, q := range append(statements, `SELECT pg_reload_conf()`) {
			_, err := pair.DB.ExecContext(t.Context(), q)
			s.OK(err)
		}
		var f doctor.Finding
		s.Eventually(says, func() bool {
			f = s.examineOn(pair.DB, d, quick(id)).Findings[0]
			return f.Severity == severity
		})
		judge(t, f, severity, says)
	}
	becomes(doctor.Warning, "replication", "a failover to it forgets")
	becomes(doctor.OK, "replication", "commits wait for one",
		`ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'`)
	becomes(doctor.Critical, "replication", "1 of them are connected",
		`ALTER SYSTEM SET synchronous_standby_names = 'ANY 2 (*)'`)
	becomes(doctor.OK, "replication", "commits wait for one",
		`ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'`)
	becomes(doctor.Critical, "durability", "fsync is off", `ALTER SYSTEM SET fsync = off`)
	becomes(doctor.OK, "durability", "outlives a crash", `ALTER SYSTEM SET fsync = on`)
	becomes(doctor.Warning, "bloat", "autovacuum is off", `ALTER SYSTEM SET autovacuum = off`)
	becomes(doctor.OK, "bloat", "are removed", `ALTER SYSTEM RESET autovacuum`)
	s.findsTheStandby(pair)
	pair.StopStandby(t)
	becomes(doctor.Critical, "replication", "every commit waits")
	becomes(doctor.OK, "replication", "no replica", `ALTER SYSTEM RESET synchronous_standby_names`)
}

func (s scene) findsTheStandby(pair *standby.Pair) {
	s.Helper()
	db := s.Dial("pgx", pair.StandbySource())
	d := postgres.New()
	s.Eventually("the tables to be replicated", func() bool {
		return s.examineOn(db, d, quick("schema")).Worst == doctor.OK
	})
	r := s.examineOn(db, d, quick())
	judge(s.T, r.Findings[0], doctor.Critical, "standby", "target_session_attrs")
	if r.Findings[0].ID != "read-only" || r.Findings[1].ID != "open" || r.Findings[2].Severity > doctor.Info {
		s.Errorf("a standby: %+v", r.Findings)
	}
	s.OK(db.Close())
}

// On a connection on which an application has left a transaction, MySQL refuses to set what the
// next one is.
func TestWhatAnApplicationHasLeftOpenIsNoFinding(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		db := s.Dial("mysql", s.Env.Source)
		var all []*sql.Conn
		for range 2 {
			conn, err := db.Conn(s.Context())
			s.OK(err)
			_, err = conn.ExecContext(s.Context(), `BEGIN`)
			s.OK(err)
			all = append(all, conn)
		}
		for _, conn := range all {
			s.OK(conn.Close())
		}
		for _, f := range s.examineOn(db, s.Env.Dialect, quick("replication", "schema", "tables", "clock")).Findings {
			if !f.Checked {
				s.Errorf("%+v", f)
			}
		}
	}, "mysql", "mariadb")
}

func TestAnOldTransactionIsFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		o := quick("horizon")
		o.OldTransaction = time.Millisecond
		tx := s.Begin(s.Env.DB, nil)
		s.Exec(tx, `UPDATE {rowlock_meta} SET value = value WHERE name = 'x'`)
		s.Exec(tx, `INSERT INTO {rowlock_hold} VALUES (?, {now})`, []byte("x"))
		s.Elapse(1100 * time.Millisecond) // MySQL counts whole seconds
		judge(t, s.findingWith("horizon", o), doctor.Warning, "a transaction (", "no dead version")
		if f := s.finding("horizon"); f.Severity > doctor.Info {
			s.Errorf("a transaction of a second: %+v", f)
		}
		s.OK(tx.Rollback())
		s.Eventually("the transaction to be gone", func() bool {
			return s.findingWith("horizon", quick("horizon")).Severity <= doctor.Info
		})
	}, "postgres", "mysql", "mariadb")
}

// A statement with binary parameters, as each of rowlock's has them, hides InnoDB's own list, and
// that of sessions. Not beside other tests: MySQL lists the same transactions again until its list
// was not read for 0.1 s.
func TestAnOldTransactionIsFoundBesideBinaryStatements(t *testing.T) {
	on(t, func(s scene) {
		o := quick("horizon")
		o.OldTransaction = time.Millisecond
		tx := s.Begin(s.Env.DB, nil)
		s.Exec(tx, `INSERT INTO {rowlock_hold} VALUES (?, {now})`, []byte("x"))
		ctx, cancel := context.WithCancel(s.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := tx.ExecContext(ctx, "SELECT SLEEP(600), ?", []byte("\xd4\x16\x04\xde\xff"))
			ended <- err
		}()
		var n int
		s.Eventually("the list to be hidden", func() bool {
			select {
			case err := <-ended:
				s.Fatal("the statement has ended:", err)
			default:
			}
			s.Elapse(150 * time.Millisecond)
			return s.Env.DB.QueryRow("SELECT count(*) FROM information_schema.INNODB_TRX").Scan(&n) != nil
		})
		s.Elapse(1100 * time.Millisecond) // whole seconds are counted
		judge(t, s.findingWith("horizon", o), doctor.Warning, "a transaction (", "no dead version")
		if f := s.findingWith("replication", quick("replication")); f.Severity > doctor.Info {
			s.Errorf("replication: %+v", f)
		}
		cancel()
		<-ended
		_ = tx.Rollback()
	}, "mysql")
}

func TestDeadVersionsAreFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} SET (autovacuum_enabled = false)`)
		s.wants(doctor.Warning, "bloat", "autovacuum is off for", "RESET (autovacuum_enabled)")
		s.deadKeys(10_000)
		s.Exec(s.Env.DB, `DELETE FROM {rowlock}`)
		s.Eventually("the server to count dead versions", func() bool {
			// Before version 15 a session tells its counts as it ends a statement, and never while idle.
			s.Exec(s.Env.DB, `SELECT 1`)
			f := s.finding("bloat")
			return len(f.Cure) > 1 && f.Severity == doctor.Warning
		})
		s.wants(doctor.Warning, "bloat", "dead versions for", "VACUUM ")
		s.Exec(s.Env.DB, `VACUUM {rowlock}`)
		s.Exec(s.Env.DB, `ALTER TABLE {rowlock} RESET (autovacuum_enabled)`)
		s.Eventually("the counters to fall", func() bool { return s.finding("bloat").Severity == doctor.OK })
	}, "postgres")
}

func TestALargeLogAndFreePagesOfAFileAreFound(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		conn, err := s.With("_pragma=synchronous(OFF)").Env.Pool(s).Conn(s.Context())
		s.OK(err)
		for _, q := range []string{
			`PRAGMA wal_autocheckpoint = 0`, `PRAGMA journal_size_limit = -1`, `CREATE TABLE big (b BLOB)`,
		} {
			s.Exec(conn, q)
		}
		for range 7 {
			s.Exec(conn, `INSERT INTO big VALUES (zeroblob(10000000))`)
		}
		s.wants(doctor.Warning, "horizon", "write-ahead log", "wal_checkpoint(TRUNCATE)")
		s.Exec(conn, `PRAGMA wal_checkpoint(TRUNCATE)`)
		s.wants(doctor.OK, "horizon")
		s.wants(doctor.OK, "bloat")
		s.Exec(conn, `DELETE FROM big`)
		s.wants(doctor.Info, "bloat", "free pages", "VACUUM;")
		s.Exec(conn, `VACUUM`)
		s.wants(doctor.OK, "bloat")
		s.OK(conn.Close())
	}, "sqlite")
}

func TestASmallPoolAndAFullServerAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(s scene) {
		db := s.Env.Pool(s)
		db.SetMaxOpenConns(1)
		f := s.examineOn(db, s.Env.Dialect, quick("connections")).Findings[0]
		judge(t, f, doctor.Critical, "SetMaxOpenConns")
		db.SetMaxOpenConns(4)
		judge(t, s.examineOn(db, s.Env.Dialect, quick("connections")).Findings[0], doctor.OK)
		if s.Is("sqlite") {
			return
		}
		db.SetMaxOpenConns(1000)
		judge(t, s.examineOn(db, s.Env.Dialect, quick("connections")).Findings[0], doctor.Warning,
			"the pool may open 1000", "MaxOpenConns(")
	})
	on(t, func(s scene) {
		role, seen := s.User()
		s.Exec(s.Env.DB, `ALTER ROLE `+role+` CONNECTION LIMIT 5`)
		db := seen.Env.Pool(s)
		db.SetMaxOpenConns(10)
		f := s.examineOn(db, s.Env.Dialect, quick("connections")).Findings[0]
		judge(t, f, doctor.Warning, "limit of this role = 5", "gives this user 5")
	}, "postgres")
}

func TestADatabaseThatIsGoneIsAnError(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		env, hole := s.Env.BehindHole(s)
		db := env.Pool(s)
		s.OK(db.PingContext(s.Context()))
		hole.Vanish()
		o := quick()
		o.Limit = 300 * time.Millisecond
		s.Within(10*time.Second, "an examination without a database", func() {
			if r, err := doctor.Examine(s.Context(), db, s.Env.Dialect, o); err == nil {
				s.Errorf("no error, and %+v", r)
			}
		})
	}, "postgres", "mysql", "mariadb")
}

// vanishing is a pool whose server vanishes in the middle of an examination, when the pool is asked
// for its size.
type vanishing struct {
	*sql.DB
	hole *testdb.Hole
	once sync.Once
}

func (v *vanishing) Stats() sql.DBStats {
	v.once.Do(v.hole.Vanish)
	return v.DB.Stats()
}

func TestADatabaseThatVanishesMeanwhileIsAnError(t *testing.T) {
	t.Parallel()
	on(t, func(s scene) {
		env, hole := s.Env.BehindHole(s)
		o := quick("server", "connections", "schema")
		o.Limit = 3 * time.Second
		s.Within(20*time.Second, "an examination whose database vanishes", func() {
			r, err := doctor.Examine(s.Context(), &vanishing{DB: env.Pool(s), hole: hole}, s.Env.Dialect, o)
			if !errors.Is(err, lease.ErrUnknown) || len(r.Findings) != 2 || r.Findings[0].Checked {
				s.Errorf("got %v, and %+v", err, r)
			}
		})
	}, "postgres", "mysql", "mariadb")
}

// A statement that takes too long is ended, and the others are made.
func TestACheckThatTakesTooLongIsAFinding(t *testing.T) {
	on(t, func(s scene) {
		tx := s.Begin(s.Env.DB, nil)
		s.Exec(tx, `LOCK TABLE {rowlock} IN ACCESS EXCLUSIVE MODE`)
		o := quick("dead-rows", "isolation", "orphans")
		o.Limit = 2 * time.Second // and a busy machine needs some of it for a connection
		r := s.examine(o)
		if len(r.Findings) != 3 || r.Worst != doctor.Warning || r.Findings[2].ID != "isolation" {
			s.Fatalf("the findings are %+v", r.Findings)
		}
		for _, f := range r.Findings[:2] {
			if f.Checked || f.Severity != doctor.Warning || len(f.Cure) == 0 {
				s.Errorf("%+v", f)
			}
		}
		s.OK(tx.Rollback())
		for _, id := range o.Only {
			s.wants(doctor.OK, id)
		}
	}, "postgres")
}

func TestBadArgumentsAreRefused(t *testing.T) {
	on(t, func(s scene) {
		var noContext context.Context
		var none dialect.DB
		for what, err := range map[string]error{
			"ctx":     of(doctor.Examine(noContext, s.Env.DB, s.Env.Dialect, nil)),
			"db":      of(doctor.Examine(s.Context(), none, s.Env.Dialect, nil)),
			"dialect": of(doctor.Examine(s.Context(), s.Env.DB, nil, nil)),
			"only":    of(doctor.Examine(s.Context(), s.Env.DB, s.Env.Dialect, &doctor.Options{Only: []string{"x"}})),
			"skip":    of(doctor.Examine(s.Context(), s.Env.DB, s.Env.Dialect, &doctor.Options{Skip: []string{""}})),
			"limit":   of(doctor.Examine(s.Context(), s.Env.DB, s.Env.Dialect, &doctor.Options{Limit: -1})),
			"prefix":  of(doctor.Examine(s.Context(), s.Env.DB, s.Env.New(dialect.Prefix("a b")), nil)),
		} {
			if err == nil {
				s.Errorf("%s: no error", what)
			}
		}
		if of(doctor.Examine(s.Context(), s.Env.DB, postgres.New(), nil)) == nil {
			s.Error("the dialect of another product: no error")
		}
	}, "sqlite")
}

func of(_ *doctor.Report, err error) error { return err }
