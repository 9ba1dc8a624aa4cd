package forupdate_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A store reads a row, and then writes by what it has read. Each write compares the row itself,
// because another client may come between the two. Here a statement runs alone.

var (
	holder, stranger = lease.Owner{1}, lease.Owner{2}
	k                = []byte("k")
)

// atOnce runs a statement that does not wait, and returns the first column of each row.
func atOnce(t *testing.T, e *testdb.Env, section string, args ...any) (rows []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience/2)
	defer cancel()
	found, err := e.DB.QueryContext(ctx, e.Dialect.Text(section), args...)
	if err != nil {
		t.Errorf("%s: %v", section, err)
		return nil
	}
	defer found.Close()
	for found.Next() {
		columns, err := found.Columns()
		ok(t, err)
		values, dest := make([][]byte, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		ok(t, found.Scan(dest...))
		rows = append(rows, string(values[0]))
	}
	ok(t, found.Err())
	return rows
}

// makeHolds leaves these rows, which have been made long ago.
func makeHolds(t *testing.T, e *testdb.Env, keys ...string) {
	t.Helper()
	e.Exec(t, "DELETE FROM {rowlock_hold}")
	for _, key := range keys {
		longAgo := "{now}" + strings.Repeat(" - {second}", 100)
		e.Exec(t, "INSERT INTO {rowlock_hold} ({key}, made_at) VALUES (?, "+longAgo+")", []byte(key))
	}
}

// lockRow has another transaction lock a row of a table.
func lockRow(t *testing.T, e *testdb.Env, table, key string) *sql.Tx {
	t.Helper()
	tx := begin(t, e)
	_, err := tx.ExecContext(t.Context(), e.SQL("SELECT 1 FROM {"+table+"} WHERE {key} = ? FOR UPDATE"), []byte(key))
	ok(t, err)
	return tx
}

// A holder that is gone is taken the lease that it had, and no other, nor one that a transaction
// stands on.
func TestALeaseIsTakenOnlyFromTheHolderThatIsGone(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		evicts := func(name string, want bool) {
			t.Helper()
			atOnce(t, e, "hold-evict", k, holder[:], 5)
			var free int
			ok(t, e.DB.QueryRowContext(t.Context(), e.SQL("SELECT COUNT(*) FROM {rowlock} WHERE owner IS NULL")).Scan(&free))
			if free > 0 != want {
				t.Errorf("%s: its lease was taken: %t", name, free > 0)
			}
		}
		for set, want := range map[string]bool{
			"note = 'gone'": true, "placement = 3": false, "token = 6": false, "owner = ?": false,
		} {
			e.OneRow(t, "k", holder, 5)
			e.Exec(t, "UPDATE {rowlock} SET "+set, slices.Repeat([]any{stranger[:]}, strings.Count(set, "?"))...)
			evicts(set, want)
		}
		e.OneRow(t, "k", holder, 5)
		tx := lockRow(t, e, "rowlock", "k")
		evicts("in a transaction", false)
		ok(t, tx.Rollback())
	})
}

// A row that a transaction has locked is no other's: it is not locked, not found free and not
// removed, and no client waits for it.
func TestAKeyThatATransactionHasIsPassedOver(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		makeHolds(t, e, "k", "l")
		both := e.Dialect.List([]string{"k", "l"})
		tx := lockRow(t, e, "rowlock_hold", "k")
		for key, want := range map[string]int{"k": 0, "l": 1} {
			if got := atOnce(t, e, "hold-lock", []byte(key)); len(got) != want {
				t.Errorf("%s: %d rows are locked, want %d", key, len(got), want)
			}
		}
		if got := atOnce(t, e, "hold-free", both); !slices.Equal(got, []string{"l"}) {
			t.Errorf("%q are free, want l", got)
		}
		atOnce(t, e, "hold-drop", both)
		ok(t, tx.Rollback())
		if got := atOnce(t, e, "hold-free", both); !slices.Equal(got, []string{"k"}) {
			t.Errorf("%q are left, want k", got)
		}
	})
}

// What was found locked or free stays so until the transaction that has found it ends.
func TestAKeyThatWasLockedIsNotFreeForAnother(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		makeHolds(t, e, "k")
		for section, arg := range map[string]any{"hold-lock": k, "hold-free": e.Dialect.List([]string{"k"})} {
			tx := begin(t, e)
			_, err := tx.ExecContext(t.Context(), e.Dialect.Text(section), arg)
			ok(t, err)
			if got := atOnce(t, e, "hold-lock", k); len(got) != 0 {
				t.Errorf("after %s another has locked the row", section)
			}
			ok(t, tx.Rollback())
		}
	})
}

// Rows that are there already stay, and the others are made.
func TestOnlyTheRowsThatLackAreMade(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		makeHolds(t, e, "k")
		all := e.Dialect.List([]string{"k", "l"})
		atOnce(t, e, "hold-make", all)
		if got := atOnce(t, e, "hold-free", all); !slices.Equal(got, []string{"k", "l"}) {
			t.Errorf("there are %q, want k and l", got)
		}
	})
}

// A row is dead that is old enough and that no lease has. The last one that was read is always
// there, so that the walk goes on.
func TestAWalkFindsTheDeadAndGoesOn(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		makeHolds(t, e, "c", "a", "k", "b", "d", "e", "l")
		e.OneRow(t, "k", holder, 5)
		e.Exec(t, "UPDATE {rowlock_hold} SET made_at = {now} WHERE {key} = ?", []byte("d"))
		const second = 1_000_000
		for _, c := range []struct {
			after string
			size  int
			want  []string
		}{
			{"", 3, []string{"a", "b", "c"}},
			{"a", 3, []string{"b", "c", "d"}},
			{"c", 2, []string{"e"}},
			{"c", 3, []string{"e", "k"}},
			{"c", 4, []string{"e", "l"}},
		} {
			args := []any{[]byte(c.after), c.size, 50 * second, c.size}
			if got := atOnce(t, e, "hold-dead", args...); !slices.Equal(got, c.want) {
				t.Errorf("after %q, %d rows: %s, want %s", c.after, c.size, fmt.Sprint(got), fmt.Sprint(c.want))
			}
		}
	})
}
