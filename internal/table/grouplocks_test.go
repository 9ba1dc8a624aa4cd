package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// onServers are the databases where two transactions write side by side.
func onServers(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("SQLite has one writer")
		}
		f(t, e)
	})
}

// begun is a session in a transaction, as a pinned connection has it, that waits as long as it
// takes.
func begun(t *testing.T, e *testdb.Env) *conn.Session {
	t.Helper()
	on := readySession(t, e, 0)
	wait := "SET SESSION innodb_lock_wait_timeout = 60"
	if e.Driver == "pgx" {
		wait = "SET lock_timeout = 60000"
	}
	do(t, on, wait)
	do(t, on, "BEGIN")
	t.Cleanup(func() { _, _ = on.Conn().ExecContext(context.Background(), "ROLLBACK") })
	return on
}

func do(t *testing.T, on *conn.Session, query string, args ...any) {
	t.Helper()
	if _, err := on.Conn().ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// besides are statements while another transaction has done something in the reader group's scene.
// None waits for that.
var besides = []struct {
	first string // SQL as Exec takes it, or a section
	args  func(*sqlstore.Dialect) []any
	onGroup
	rows string
}{
	{endsGroup, fixed(k), onGroup{"share", shareN, nil, same}, ""},
	{endsGroup, fixed(k), onGroup{"share-one", shareOne, nil, same}, ""},
	{"share", shareN, onGroup{"readers-lock", fixed(k), nil, same}, "0"},
	{"share-one", shareOne, onGroup{"readers-lock", fixed(k), nil, same}, "0"},
	{"readers-fence", fixed(k, theGroup, 5), onGroup{"readers-lock", fixed(k), nil, same}, "0"},
	{"readers-fence", fixed(k, theGroup, 5), onGroup{"readers-fence", fixed(k, theGroup, 5), nil, same}, "1"},
	{"readers-fence", fixed(k, theGroup, 5), onGroup{"share-one", shareOne, nil, same + "; 5n long"}, ""},
	{locksMember, fixed(person("a")), onGroup{
		"member-renew", these(nil, item("a", 5), item("n", 5)),
		joins(theGroup, "n", later), same + "; 5n long",
	}, ""},
	{"member-renew", these(nil, item("a", 5)), onGroup{
		"member-renew", these(nil, item("n", 5), item("a", 4)),
		both(joins(theGroup, "n", later), joins(oldGroup, "a", later)), "4a long; " + same + "; 5n long",
	}, ""},
}

const (
	endsGroup   = "SELECT owner FROM {rowlock} WHERE {key} = ? FOR UPDATE"
	locksMember = "SELECT owner FROM {rowlock_member} WHERE owner = ? FOR UPDATE"
)

// What ends a reader group and what its members do pass over each other's rows, and two members
// meet at none.
func TestStatementsOfAGroupPassOverWhatIsLocked(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		for i, c := range besides {
			c.scene(e, t)
			first := begun(t, e)
			query := e.SQL(c.first)
			if !strings.Contains(query, " ") {
				query = e.Dialect.Text(query)
			}
			do(t, first, query, c.args(e.Dialect)...)
			second := begun(t, e)
			n, err := rowsOf(t, second, e.Dialect.Text(c.section), c.onGroup.args(e.Dialect))
			if err != nil || c.rows != "" && fmt.Sprint(n) != c.rows {
				t.Errorf("%s after %s, case %d: %d rows, %v; want %q", c.section, c.first, i, n, err, c.rows)
			}
			do(t, second, "COMMIT")
			do(t, first, "ROLLBACK")
			if got := left(e, t); got != c.want {
				t.Errorf("%s after %s, case %d, left %s, want %s", c.section, c.first, i, got, c.want)
			}
		}
	})
}

// rowsOf is how many rows a statement returns that must not wait.
func rowsOf(t *testing.T, on *conn.Session, query string, args []any) (n int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience/2)
	defer cancel()
	found, err := on.Conn().QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	for found.Next() {
		n++
	}
	return n, errors.Join(found.Err(), found.Close())
}

// waits are statements that come while another transaction has ended what they are about, and not
// committed that. They wait for it, and find nothing.
var waits = []struct {
	first, mysql string
	onGroup
}{
	{leavesFirst, "only", onGroup{"member-leave", leave(item("a", 5), item("n", 5)), joins(theGroup, "n", later), same}},
	{"UPDATE {rowlock} SET owner = NULL", "", onGroup{"force-lock", fixed(k), nil, same}},
	{"UPDATE {rowlock} SET owner = NULL", "", onGroup{"readers-fence", fixed(k, theGroup, 5), nil, same}},
}

// leavesFirst is what ends the later one of two members that leave together.
const leavesFirst = "DELETE FROM {rowlock_member} WHERE note = 'n'"

func TestStatementsOfAGroupWaitForWhatDecides(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		for _, c := range waits {
			if c.mysql == "only" && e.Driver != "mysql" {
				continue
			}
			c.scene(e, t)
			first, second := begun(t, e), begun(t, e)
			do(t, first, e.SQL(c.first))
			type answer struct {
				rows int
				err  error
			}
			ended := make(chan answer, 1)
			go func() {
				n, err := rowsOf(t, second, e.Dialect.Text(c.section), c.args(e.Dialect))
				ended <- answer{n, err}
			}()
			untilOneWaits(t, e, func() bool { return len(ended) > 0 })
			do(t, first, "COMMIT")
			if got := <-ended; got.err != nil || got.rows != 0 {
				t.Errorf("%s: %d rows, %v", c.section, got.rows, got.err)
			}
			do(t, second, "COMMIT")
			if got := left(e, t); got != c.want {
				t.Errorf("%s left %s, want %s", c.section, got, c.want)
			}
		}
	})
}

// untilOneWaits returns when a transaction waits for a row of these tables, or has not had to.
func untilOneWaits(t *testing.T, e *testdb.Env, ended func() bool) {
	t.Helper()
	untilThere(t, e, func(waits int) bool { return waits > 0 || ended() })
}

func untilNoneWaits(t *testing.T, e *testdb.Env) {
	t.Helper()
	untilThere(t, e, func(waits int) bool { return waits == 0 })
}

// untilThere returns when enough transactions wait for rows of these tables.
func untilThere(t *testing.T, e *testdb.Env, enough func(waits int) bool) {
	t.Helper()
	prefix, pause := e.Dialect.Names().Prefix, time.Millisecond
	query := map[string]string{
		"postgres": `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
			AND query LIKE '%` + prefix + `%'`,
		"mariadb": `SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'
			AND trx_query LIKE '%` + prefix + `%'`,
		"mysql": `SELECT COUNT(*) FROM performance_schema.data_locks WHERE lock_status = 'WAITING'
			AND object_name LIKE '` + prefix + `%'`,
	}[e.Name]
	if e.Name == "mariadb" {
		// It answers from a cache that is made anew only after 100 ms without a question.
		pause = 150 * time.Millisecond
	}
	for {
		var n int
		if err := e.DB.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if enough(n) {
			return
		}
		time.Sleep(pause)
	}
}

// On MariaDB and MySQL a transaction may read as of its beginning. Whether a reader group has
// members is read as of now, or refused.
func TestStatementsOfAGroupSeeAMemberThatHasJustJoined(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("there is no such read")
		}
		c := onGroup{"readers-left", fixed(k, theGroup), both(leaves("a"), leaves("d")), "1"}
		c.scene(e, t)
		on := readySession(t, e, 0)
		do(t, on, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
		do(t, on, "BEGIN")
		if n, err := rowsOf(t, on, e.SQL("SELECT 1 FROM {rowlock_member} WHERE note = 'a'"), nil); err != nil || n != 0 {
			t.Fatalf("%d rows, %v", n, err)
		}
		joins(theGroup, "a", later)(e, t)
		if n, err := rowsOf(t, on, e.Dialect.Text(c.section), c.args(e.Dialect)); err == nil && n != 1 {
			t.Errorf("%d members are left, want the one that has joined", n)
		}
		do(t, on, "ROLLBACK")
	})
}
