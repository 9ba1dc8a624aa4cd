package failover

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// restored is a database that a test restores while its server goes on running, and its clients are
// stopped. The server's start, its name and its address stay as they were.
type restored struct {
	*testing.T
	kind   testdb.Kind
	source string
	d      *sqlstore.Dialect
	last   rowlock.Token // the newest token
}

// way is one of those in which the manuals of a server say that data is restored.
type way struct {
	name            string
	backup, restore func(r *restored)
}

// Tokens that were granted after the backup are forgotten by the restore, and granted by nothing
// after it.
func restores(t *testing.T, k testdb.Kind, ways []way) {
	k.DSN(t) // skips
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			r := &restored{T: t, kind: k, d: sqlstore.Of(k.New())}
			r.make()
			r.migrate()
			r.grant(2)
			w.backup(r)
			r.grant(3)
			w.restore(r)
			r.grant(2)
			r.grant(2) // and the history is known from now on
		})
	}
}

// make makes the database.
func (r *restored) make() {
	r.Helper()
	if r.kind.Driver == "mysql" {
		r.source = r.kind.Fresh(r)
		return
	}
	u, err := url.Parse(r.kind.DSN(r))
	if err != nil {
		r.Fatal(err)
	}
	u.Path = fmt.Sprintf("/restored_%d_%d", os.Getpid(), serial.Add(1))
	r.source = u.String()
	r.admin(`CREATE DATABASE app`)
	r.Cleanup(func() { r.admin(`DROP DATABASE IF EXISTS app`) })
}

var serial atomic.Int64

func (r *restored) migrate() {
	r.Helper()
	r.do(func(db *sql.DB) {
		if err := schema.Migrate(r.Context(), db, r.d); err != nil {
			r.Fatal(err)
		}
	})
}

// grant locks a key n times, in a program of its own.
func (r *restored) grant(n int) {
	r.Helper()
	r.do(func(db *sql.DB) {
		c := client(r, db, r.d)
		defer c.Close()
		for range n {
			var l *rowlock.Lock
			servertest.Eventually(r, "the key to be granted", func() (ok bool) {
				var err error
				l, err = c.TryLock(r.Context(), "k")
				return err == nil
			})
			if l.Token() <= r.last {
				r.Errorf("token %d after %d", l.Token(), r.last)
			}
			r.last = max(r.last, l.Token())
			if err := l.Unlock(r.Context()); err != nil {
				r.Error(err)
			}
		}
	})
}

// do opens the database for f alone.
func (r *restored) do(f func(db *sql.DB)) {
	r.Helper()
	db, err := sql.Open(r.kind.Driver, r.source)
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	f(db)
}

func (r *restored) exec(statements ...string) {
	r.Helper()
	r.do(func(db *sql.DB) { exec(r, db, statements...) })
}

// admin executes statements in another database of the server, because nothing may be connected to
// one that is copied.
func (r *restored) admin(statements ...string) {
	r.Helper()
	db, err := sql.Open(r.kind.Driver, r.kind.DSN(r))
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		s = strings.ReplaceAll(s, "app", r.name())
		if _, err := db.ExecContext(context.WithoutCancel(r.Context()), s); err != nil {
			r.Errorf("%s: %v", s, err)
		}
	}
}

// name is that of the database.
func (r *restored) name() string {
	r.Helper()
	if cfg, err := driver.ParseDSN(r.source); r.kind.Driver == "mysql" && err == nil {
		return cfg.DBName
	}
	u, err := url.Parse(r.source)
	if err != nil {
		r.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// program runs one of PostgreSQL's.
func (r *restored) program(in []byte, name string, args ...string) []byte {
	r.Helper()
	path, err := osexec.LookPath(name)
	if err != nil {
		r.Skip(err)
	}
	var out, complaint bytes.Buffer
	cmd := osexec.CommandContext(context.WithoutCancel(r.Context()), path, append([]string{"--dbname=" + r.source}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &complaint
	if err := cmd.Run(); err != nil {
		r.Fatalf("%s: %v\n%s", name, err, complaint.String())
	}
	return out.Bytes()
}

// dumped is a way by which a dump with these arguments is loaded by a program, after a preparation.
func dumped(name string, dump []string, prepare func(r *restored), load string, args ...string) way {
	file := func(r *restored) string {
		return filepath.Join(os.TempDir(), r.name()+".dump")
	}
	return way{name, func(r *restored) {
		path := file(r)
		r.Cleanup(func() { _ = os.Remove(path) })
		r.program(nil, "pg_dump", append(dump, "--file="+path)...)
	}, func(r *restored) {
		prepare(r)
		r.program(nil, load, append(args, file(r))...)
	}}
}

func nothing(*restored) {}

// emptied has no rows any more, in tables that stay.
func emptied(by string) func(r *restored) {
	return func(r *restored) {
		var tables []string
		r.do(func(db *sql.DB) { tables = tablesOf(r, db) })
		for _, t := range tables {
			r.exec(by + " " + t)
		}
	}
}

func tablesOf(tb testing.TB, db *sql.DB) (names []string) {
	tb.Helper()
	rows, err := db.Query(`SELECT table_name FROM information_schema.tables
		WHERE table_name LIKE 'rowlock%' AND table_schema NOT LIKE 'pg%' AND table_schema IN
			(SELECT table_schema FROM information_schema.tables WHERE table_name = 'rowlock_meta')`)
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			tb.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func TestNoTokenRepeatsAfterARestoreOfPostgreSQL(t *testing.T) {
	anew := func(r *restored) { r.admin(`DROP DATABASE app`, `CREATE DATABASE app`) }
	copied := func(r *restored) {
		r.admin(`CREATE DATABASE app_backup TEMPLATE app`)
		r.Cleanup(func() { r.admin(`DROP DATABASE IF EXISTS app_backup`, `DROP DATABASE IF EXISTS app_old`) })
	}
	restores(t, testdb.Kinds[1], []way{
		{"a copy by TEMPLATE, after a rename", copied, func(r *restored) {
			r.admin(`ALTER DATABASE app RENAME TO app_old`, `CREATE DATABASE app TEMPLATE app_backup`)
		}},
		{"the backup renamed", copied, func(r *restored) {
			r.admin(`DROP DATABASE app`, `ALTER DATABASE app_backup RENAME TO app`)
		}},
		{"a copy by TEMPLATE under the same oid", copied, func(r *restored) {
			var oid int
			r.do(func(db *sql.DB) {
				err := db.QueryRow(`SELECT oid FROM pg_database WHERE datname = current_database()
					AND current_setting('server_version_num')::int >= 150000`).Scan(&oid)
				if err != nil {
					r.Skip("CREATE DATABASE takes no oid before version 15: ", err)
				}
			})
			r.admin(`DROP DATABASE app`, fmt.Sprint(`CREATE DATABASE app TEMPLATE app_backup OID `, oid))
		}},
		dumped("psql into a new database", nil, anew, "psql", "--set=ON_ERROR_STOP=1", "--quiet", "--file"),
		dumped("psql with --clean", []string{"--clean"}, nothing, "psql", "--set=ON_ERROR_STOP=1", "--quiet", "--file"),
		dumped("pg_restore into a new database", []string{"--format=custom"}, anew, "pg_restore"),
		dumped("pg_restore with --clean", []string{"--format=custom"}, nothing, "pg_restore", "--clean"),
		dumped("rows, after TRUNCATE", []string{"--format=custom"}, emptied("TRUNCATE"), "pg_restore", "--data-only"),
		dumped("rows, after DELETE", []string{"--format=custom"}, emptied("DELETE FROM"), "pg_restore", "--data-only"),
		dumped("rows as INSERT", []string{"--data-only", "--inserts"}, emptied("DELETE FROM"),
			"psql", "--set=ON_ERROR_STOP=1", "--quiet", "--file"),
	})
}

// aside keeps a copy of each table in this server, as a dump does in a file.
func aside(r *restored) {
	r.do(func(db *sql.DB) {
		tick(r, db)
		for _, t := range tablesOf(r, db) {
			exec(r, db, "CREATE TABLE kept_"+t+" LIKE "+t, "INSERT INTO kept_"+t+" SELECT * FROM "+t)
		}
		tick(r, db)
	})
}

// tick returns in another second of the server's, because tables have no finer time of creation.
func tick(tb testing.TB, db *sql.DB) {
	tb.Helper()
	var from, now int64
	for now <= from+1 {
		if err := db.QueryRow(`SELECT UNIX_TIMESTAMP(), SLEEP(0.1)`).Scan(&now, new(int)); err != nil {
			tb.Fatal(err)
		}
		if from == 0 {
			from = now
		}
	}
}

// loaded brings each table back by statements, in which @table is its name, @kept that of its copy
// and @definition its CREATE TABLE.
func loaded(statements ...string) func(r *restored) {
	return func(r *restored) {
		r.do(func(db *sql.DB) {
			for _, t := range tablesOf(r, db) {
				var name, definition string
				if err := db.QueryRow("SHOW CREATE TABLE "+t).Scan(&name, &definition); err != nil {
					r.Fatal(err)
				}
				fill := strings.NewReplacer("@table", t, "@kept", "kept_"+t, "@definition", definition)
				for _, s := range statements {
					exec(r, db, fill.Replace(s))
				}
			}
		})
	}
}

// ended is what an operator does after a restore that leaves no trace: see docs/failover.md.
func ended(restore func(r *restored)) func(r *restored) {
	return func(r *restored) {
		restore(r)
		r.exec(`DELETE FROM rowlock_meta WHERE name LIKE 'era/%'`)
	}
}

func TestNoTokenRepeatsAfterARestoreOfMySQLAndMariaDB(t *testing.T) {
	const load = `INSERT INTO @table SELECT * FROM @kept`
	for _, k := range testdb.Kinds[2:] {
		t.Run(k.Name, func(t *testing.T) {
			ways := []way{
				{"a dump that makes the tables", aside, loaded(`DROP TABLE @table`, `@definition`, load)},
				{"tables exchanged", aside, loaded(`RENAME TABLE @table TO old_@table, @kept TO @table`)},
				{"rows, after DELETE, and the eras deleted", aside, ended(loaded(`DELETE FROM @table`, load))},
				{"rows, after TRUNCATE, and the eras deleted", aside, ended(loaded(`TRUNCATE TABLE @table`, load))},
			}
			restores(t, k, ways)
		})
	}
}
