package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// answers are what statements return of the reader group's scene: a line for each row. A time that
// remains is alive, or long if it is that of a longer member. On MySQL a member leaves in two
// statements.
var answers = []struct {
	onGroup
	mysql, others bool
}{
	{onGroup{"member-look", listed(), nil, "k 1 alive a 0"}, true, true},
	{onGroup{"member-look", listed(), longer(oldGroup, "n"), "k 1 alive a 0"}, true, true},
	{onGroup{"member-look", listed(), longer(theGroup, "n"), "k 2 long n 0"}, true, true},
	{onGroup{"member-look", listed(), joins(intents, "w", past), "k 1 alive a 0"}, true, true},
	{onGroup{"member-look", listed(), joins(intents, "w", later), "k 1 alive a 1"}, true, true},
	{onGroup{"member-others", listed(), leaves("a"), "k 0"}, true, true},
	{onGroup{"member-others", listed(), both(leaves("a"), joins(intents, "w", past)), "k 0"}, true, true},
	{onGroup{"member-others", listed(), both(leaves("a"), joins(intents, "w", later)), "k 1"}, true, true},
	{onGroup{"member-leave-one", leaving, nil, "0 0"}, false, true},
	{onGroup{"member-leave-one", leaving, joins(theGroup, "n", later), "1 0"}, false, true},
	{onGroup{"member-leave-one", leaving, joins(intents, "w", past), "0 0"}, false, true},
	{onGroup{"member-leave-one", leaving, joins(intents, "w", later), "0 1"}, false, true},
	{onGroup{"member-rest", fixed(k, theGroup), nil, "1"}, true, false},
	{onGroup{"member-rest", fixed(k, theGroup), leaves("a"), ""}, true, false},
}

var leaving = fixed(k, theGroup, person("a"))

// longer has a member join that lives longer than the others.
func longer(group []byte, name string) func(*testdb.Env, *testing.T) {
	return both(joins(group, name, later), func(e *testdb.Env, t *testing.T) {
		t.Helper()
		more := strings.Repeat(" + {second}", 100)
		e.Exec(t, "UPDATE {rowlock_member} SET expires_at = expires_at"+more+" WHERE owner = ?", person(name))
	})
}

// A caller is told of the members of this reader group that live, and of the intents that do. By
// the answer a holder learns whether it was the last.
func TestStatementsOfAGroupTellOfItsLivingMembers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for i, c := range answers {
			if mysql := e.Driver == "mysql"; mysql && !c.mysql || !mysql && !c.others {
				continue
			}
			c.scene(e, t)
			if got := told(e, t, &c.onGroup); got != c.want {
				t.Errorf("%s, case %d, told %q, want %q", c.section, i, got, c.want)
			}
		}
	})
}

func told(e *testdb.Env, t *testing.T, c *onGroup) string {
	t.Helper()
	found, err := e.DB.QueryContext(context.Background(), e.Dialect.Text(c.section), c.args(e.Dialect)...)
	if err != nil {
		t.Fatal(c.section, err)
	}
	defer found.Close()
	var lines []string
	for found.Next() {
		columns, err := found.Columns()
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err = errors.Join(err, found.Scan(dest...)); err != nil {
			t.Fatal(c.section, err)
		}
		lines = append(lines, worded(values))
	}
	if err := found.Err(); err != nil {
		t.Fatal(c.section, err)
	}
	return strings.Join(lines, "\n")
}

func worded(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case []byte:
			words[i] = string(v)
		case int64:
			words[i] = lasting(v)
		default:
			words[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(words, " ")
}

// lasting is a number, or how long so many µs are.
func lasting(n int64) string {
	switch {
	case n > 301_000_000:
		return "long"
	case n > 1_000_000:
		return "alive"
	}
	return fmt.Sprint(n)
}
