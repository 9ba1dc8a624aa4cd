package doctor

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

var update = flag.Bool("update", false, "write the .tables files instead of comparing with them")

// The files say what the migrations make: -update writes them.
func TestExpectedTablesAreThoseOfTheMigrations(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		x, err := newExaminer(t.Context(), e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.leave()
		x.o.Limit = time.Minute
		got := x.made(t)
		file := e.Dialect.Name() + ".tables"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if want, _ := os.ReadFile(file); string(want) != got {
			t.Errorf("%s differs from the tables; -update writes it:\n%s", file, got)
		}
	})
}

// made are the lines for the tables as they are.
func (x *examiner) made(t *testing.T) string {
	t.Helper()
	if err := x.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	columns, err := x.columns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for table, names := range columns {
		slices.Sort(names)
		lines = append(lines, table+" columns "+strings.Join(names, ","))
	}
	indexes, err := x.scan(t.Context(), "indexes", x.like()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range indexes {
		if !slices.Contains(tableNames, x.short(r[0])) {
			t.Errorf("no feature has the table %s: nothing looks at its columns and rights", r[0])
		}
		lines = append(lines, x.short(r[0])+" "+r[1]+" "+r[2])
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}
