package table_test

import (
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// longAgo is before any test has begun.
var longAgo = "{now}" + strings.Repeat(" - {second}", 60)

// namesakes are writes beside members that have one of the names, reader group or owner, of those
// that are meant.
var namesakes = []onGroup{
	{"share-one", fixed(person("a"), "n", hour, k), nil, "4o alive; 5a long; 5d dead"},
	{"share", shareN, joins(oldGroup, "n", later), "4n alive; 4o alive; 5a alive; 5d dead; 5n long"},

	{
		"member-renew", these(nil, item("a", 5)), both(joins(theGroup, "n", later), joins(oldGroup, "a", later)),
		"4a alive; 4o alive; 5a long; 5d dead; 5n alive",
	},
	{
		"member-renew", these(nil, item("a", 5), aMinute("n", 5)), joins(theGroup, "n", later),
		"4o alive; 5a long; 5d dead; 5n alive",
	},
	{"member-renew", these(nil, aMinute("a", 5), item("n", 5)), joins(theGroup, "n", later), same + "; 5n long"},
	{"member-renew", these(nil, item("a", 4), aMinute("a", 5)), joins(oldGroup, "a", later), "4a long; " + same},
	{
		"member-renew", these(nil, aMinute("a", 4), item("a", 5)), joins(oldGroup, "a", later),
		"4a alive; 4o alive; 5a long; 5d dead",
	},

	{"member-leave", leave(item("a", 5)), nil, "4o alive; 5d dead"},
	{"member-leave", leave(item("a", 4)), nil, same},
	{"member-leave", leave(item("n", 5)), nil, same},
	{"member-leave", leave(item("a", 5)), joins(oldGroup, "a", later), "4a alive; 4o alive; 5d dead"},
	{"member-leave", leave(item("a", 5), item("d", 5)), nil, "4o alive"},

	{"force-members", fixed(k, theGroup), joins(intents, "w", later), "0w alive; 4o alive"},

	{"intend", listed(person("w"), hour), both(joins(intents, "w", later), since), "0w long, old; " + same},
	{"intend", listed(person("w"), hour), both(joins(intents, "w", past), since), "0w long; " + same},
}

// aMinute asks for less than what is left of the members.
func aMinute(name string, token lease.Token) lease.RenewRequest {
	r := item(name, token)
	r.TTL /= 60
	return r
}

func leave(items ...lease.RenewRequest) func(*sqlstore.Dialect) []any {
	return func(d *sqlstore.Dialect) []any {
		args := d.Rows(items)
		if d.Name() == "mysql" {
			args = append(args, len(items))
		}
		return args
	}
}

// since has the intents be old.
func since(e *testdb.Env, t *testing.T) {
	t.Helper()
	e.Exec(t, "UPDATE {rowlock_member} SET joined_at = "+longAgo+" - {second} WHERE reader_group = ?", intents)
}

// None of a batch leaves unless all do: on MySQL, where the statement says only how many have.
func TestStatementsOfAGroupHaveAllLeaveOrNone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Driver != "mysql" {
			t.Skip("the statement says which have left")
		}
		c := onGroup{"member-leave", leave(item("a", 5), item("n", 5)), nil, same}
		c.scene(e, t)
		e.Exec(t, e.Dialect.Text(c.section), c.args(e.Dialect)...)
		if got := left(e, t); got != c.want {
			t.Errorf("it left %s, want %s", got, c.want)
		}
	})
}
