package table_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// The statements of shared keys by themselves, on the key "k" that the reader group of token 5
// holds. Its members are a, which lives, and d, which is dead. The member o is one of the reader
// group before.

const exclusive = "expires_at = {now} + {second}"

var (
	theGroup, oldGroup, intents = groupOf(5), groupOf(4), make([]byte, 16)

	people = map[string]lease.Owner{"a": {'a'}, "d": {'d'}, "o": {'o'}, "n": {'n'}, "w": {'w'}}
	same   = "4o alive; 5a alive; 5d dead"
)

func groupOf(token lease.Token) []byte {
	return binary.BigEndian.AppendUint64([]byte("rowlockT"), uint64(token))
}

func person(name string) []byte { o := people[name]; return o[:] }

// item is a member as the statements get a list of them.
func item(name string, token lease.Token) lease.RenewRequest {
	return lease.RenewRequest{Lease: lease.Lease{Key: "k", Owner: people[name], Token: token}, TTL: 3_600_000_000_000}
}

// onGroup is a statement, what comes before it, and what it leaves or reads.
type onGroup struct {
	section string
	args    func(d *sqlstore.Dialect) []any
	before  func(e *testdb.Env, t *testing.T)
	want    string
}

func row(set string) func(*testdb.Env, *testing.T) {
	return func(e *testdb.Env, t *testing.T) { t.Helper(); e.Exec(t, "UPDATE {rowlock} SET "+set) }
}

func joins(group []byte, name, until string) func(*testdb.Env, *testing.T) {
	return func(e *testdb.Env, t *testing.T) {
		t.Helper()
		e.Exec(t, "INSERT INTO {rowlock_member} ({key}, reader_group, owner, note, joined_at, expires_at) VALUES (?, ?, ?, ?, {now}, "+until+")",
			k, group, person(name), name)
	}
}

func leaves(name string) func(*testdb.Env, *testing.T) {
	return func(e *testdb.Env, t *testing.T) {
		t.Helper()
		e.Exec(t, "DELETE FROM {rowlock_member} WHERE owner = ?", person(name))
	}
}

func fixed(args ...any) func(*sqlstore.Dialect) []any {
	return func(*sqlstore.Dialect) []any { return args }
}

func listed(before ...any) func(*sqlstore.Dialect) []any {
	return func(d *sqlstore.Dialect) []any {
		return append(before[:len(before):len(before)], d.List([]string{"k"}))
	}
}

func these(note []any, items ...lease.RenewRequest) func(*sqlstore.Dialect) []any {
	return func(d *sqlstore.Dialect) []any { return append(note[:len(note):len(note)], d.Rows(items)...) }
}

var (
	shareN   = these([]any{"n"}, item("n", 0))
	shareOne = fixed(person("n"), "n", hour, k)
	past     = "{now} - {second}"
)

var onGroups = []onGroup{
	{"share", shareN, nil, same + "; 5n long"},
	{"share", shareN, joins(intents, "w", past), "0w dead; " + same + "; 5n long"},
	{"share", shareN, joins(intents, "w", later), "0w alive; " + same},
	{"share", shareN, row(moved), same},
	{"share", shareN, row(exclusive), same},
	{"share", shareN, row(freed), same},
	{"share-one", shareOne, nil, same + "; 5n long"},
	{"share-one", shareOne, joins(intents, "w", past), "0w dead; " + same + "; 5n long"},
	{"share-one", shareOne, joins(intents, "w", later), "0w alive; " + same},
	{"share-one", shareOne, row(moved), same},
	{"share-one", shareOne, row(exclusive), same},
	{"share-one", shareOne, row(freed), same},
	{"member-renew", these(nil, item("a", 5)), nil, "4o alive; 5a long; 5d dead"},
	{"member-renew", these(nil, item("d", 5)), nil, same},
	{"member-renew", these(nil, item("a", 4)), nil, same},
	{"member-renew", these(nil, item("n", 5)), nil, same},
	{"member-leave-one", fixed(k, theGroup, person("a")), nil, "4o alive; 5d dead"},
	{"member-leave-one", fixed(k, oldGroup, person("a")), nil, same},
	{"member-leave-tx", fixed(k, theGroup, person("a")), nil, "4o alive; 5d dead"},
	{"member-leave-tx", fixed(k, oldGroup, person("a")), nil, same},
	{"intend", listed(person("w"), hour), nil, "0w long; " + same},
	{"unintend", func(d *sqlstore.Dialect) []any { return []any{d.List([]string{"k"}), person("a")} }, nil, same},
	{"unintend", func(d *sqlstore.Dialect) []any { return []any{d.List([]string{"k"}), person("w")} }, joins(intents, "w", later), same},
	{"unintend", func(d *sqlstore.Dialect) []any { return []any{d.List([]string{"k"}), person("a")} }, joins(intents, "w", later), "0w alive; " + same},
	{"readers-clear", fixed(k, theGroup), nil, "4o alive; 5a alive"},
	{"readers-clear", fixed(k, oldGroup), nil, same},
	{"readers-first", fixed(person("n"), hour, k, theGroup), nil, same + "; 5n long"},
	{"readers-first", fixed(person("n"), hour, k, oldGroup), nil, same},
}

// readers are statements that read, and how many rows they find.
var readers = []onGroup{
	{"member-look", listed(), nil, "1"},
	{"member-look", listed(), row(moved), "0"},
	{"member-look", listed(), row(exclusive), "0"},
	{"member-look", listed(), row(freed), "0"},
	{"member-others", listed(), nil, "0"},
	{"member-others", listed(), leaves("a"), "1"},
	{"member-find", these(nil, item("a", 0)), nil, "1"},
	{"member-find", these(nil, item("n", 0)), nil, "0"},
	{"member-find", these(nil, item("w", 0)), joins(intents, "w", later), "0"},
	{"member-left", these(nil, item("a", 5)), nil, "1"},
	{"member-left", these(nil, item("a", 4)), nil, "0"},
	{"member-left", these(nil, item("n", 5)), nil, "0"},
	{"member-dead", fixed(0, 10), nil, "1"},
	{"readers-lock", fixed(k), nil, "1"},
	{"readers-lock", fixed(k), row(moved), "0"},
	{"readers-lock", fixed(k), row(exclusive), "0"},
	{"readers-lock", fixed(k), row(freed), "0"},
	{"readers-left", fixed(k, theGroup), nil, "1"},
	{"readers-left", fixed(k, groupOf(3)), nil, "0"},
	{"readers-idle", fixed(10), nil, "0"},
	{"readers-idle", fixed(10), leaves("a"), "1"},
	{"readers-fence", fixed(k, theGroup, 5), nil, "1"},
	{"readers-fence", fixed(k, oldGroup, 5), nil, "0"},
	{"readers-fence", fixed(k, theGroup, 4), nil, "0"},
	{"readers-fence", fixed(k, theGroup, 5), row(moved), "0"},
}

func TestStatementsOfAGroupTouchOnlyItsMembers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for i, c := range slices.Concat(onGroups, namesakes) {
			c.scene(e, t)
			if _, err := e.DB.ExecContext(t.Context(), e.Dialect.Text(c.section), c.args(e.Dialect)...); err != nil {
				t.Errorf("%s: %v", c.section, err)
			}
			if got := left(e, t); got != c.want {
				t.Errorf("%s, case %d, left %s, want %s", c.section, i, got, c.want)
			}
		}
	})
}

func TestStatementsOfAGroupReadOnlyItsMembers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		all := slices.Clone(readers)
		for _, set := range []string{moved, exclusive, freed} {
			without := both(leaves("a"), row(set))
			all = append(all, onGroup{"member-others", listed(), without, "0"}, onGroup{"readers-idle", fixed(10), without, "0"})
		}
		for i, c := range all {
			c.scene(e, t)
			found, err := e.DB.QueryContext(t.Context(), e.Dialect.Text(c.section), c.args(e.Dialect)...)
			if err != nil {
				t.Errorf("%s: %v", c.section, err)
				continue
			}
			n := 0
			for found.Next() {
				n++
			}
			if err := found.Err(); err != nil || fmt.Sprint(n) != c.want {
				t.Errorf("%s, case %d, found %d rows, want %s; %v", c.section, i, n, c.want, err)
			}
		}
	})
}

func both(f, g func(*testdb.Env, *testing.T)) func(*testdb.Env, *testing.T) {
	return func(e *testdb.Env, t *testing.T) { t.Helper(); f(e, t); g(e, t) }
}

func (c *onGroup) scene(e *testdb.Env, t *testing.T) {
	t.Helper()
	e.Exec(t, "DELETE FROM {rowlock_member}")
	end := map[string]string{"sqlite": "253370764800000", "pgx": "'9999-01-01 00:00:00+00'", "mysql": "'9999-01-01 00:00:00'"}[e.Driver]
	ready(t, e, "expires_at = "+end)
	e.Exec(t, "UPDATE {rowlock} SET owner = ?", theGroup)
	joins(theGroup, "a", later)(e, t)
	joins(theGroup, "d", past)(e, t)
	joins(oldGroup, "o", later)(e, t)
	if c.before != nil {
		c.before(e, t)
	}
}

// left are the members by reader group and name, and whether they live: long, if they were renewed,
// and since when, if they are old.
func left(e *testdb.Env, t *testing.T) string {
	t.Helper()
	found, err := e.DB.QueryContext(context.Background(), e.SQL("SELECT reader_group, owner, CASE WHEN expires_at > "+later+
		" + {second} THEN 'long' WHEN expires_at > {now} THEN 'alive' ELSE 'dead' END, CASE WHEN joined_at < "+longAgo+" THEN ', old' ELSE '' END FROM {rowlock_member} ORDER BY 1, 2"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for found.Next() {
		var group, owner []byte
		var state, old string
		if err := found.Scan(&group, &owner, &state, &old); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d%c %s%s", group[15], owner[0], state, old))
	}
	return strings.Join(all, "; ")
}
