package dialect_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// uses are what a program can do, with the set of tables that it needs and the files that have its
// statements. Those of a lock are not repeated for what needs a client.
var uses = []struct {
	name  string
	set   sqlstore.Set
	files []string
}{
	{"core: every client, for locks, queues, waits, eras, the reaper", sqlstore.Core, []string{
		"statements", "queue", "hints", "token", "cas", "era", "graph", "move",
	}},
	{"core: `Client.ForceRelease` and `rowlock release`, besides", sqlstore.Core, []string{"force"}},
	{"shared: every client where the set is, besides", sqlstore.Shared, []string{"shared", "limit"}},
	{"once: `once` and `oncehttp`, without locks", sqlstore.Once, []string{"once"}},
	{"latch: `latch`, without locks", sqlstore.Latch, []string{"latch"}},
	{"forupdate: `forupdate`, besides", sqlstore.ForUpdate, []string{"hold"}},
	{"trace: `Config.Trace`, besides", sqlstore.Trace, []string{"trace"}},
}

// A database without a set has no statement that needs it, unless it is asked for what the set is
// for.
func TestStatementsUseTheTablesOfTheirSetAndOfCore(t *testing.T) {
	for _, u := range uses {
		for table := range rightsIn(t, u.files) {
			if !slices.Contains(slices.Concat(sqlstore.SetTables[sqlstore.Core], sqlstore.SetTables[u.set]), table) {
				t.Errorf("a statement of %s, in %v, uses %s", u.set, u.files, table)
			}
		}
	}
}

var verbs = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}

var (
	inserts = regexp.MustCompile(`\bINSERT (?:IGNORE )?INTO (rowlock\w*)`)
	updates = regexp.MustCompile(`(?:^|[^R] |\n|\()\bUPDATE (rowlock\w*)`)
	deletes = regexp.MustCompile(`\bDELETE (?:\w+ )?FROM (rowlock\w*)`)
	reads   = regexp.MustCompile(`\b(?:FROM|JOIN|USING) (rowlock\w*)`)
	waits   = regexp.MustCompile(`\bFOR (?:NO KEY )?(?:UPDATE|SHARE)(?: OF (\w+))?`)
	merges  = regexp.MustCompile(`\bDO UPDATE\b|\bON DUPLICATE KEY UPDATE\b`)
	answers = regexp.MustCompile(`\bON CONFLICT \(|\bRETURNING\b`)
)

// rightsOf is what a server asks of a user who sends a statement, by table.
func rightsOf(sql string) map[string][]string {
	found := make(map[string][]string)
	need := func(table string, rights ...string) { found[table] = append(found[table], rights...) }
	for _, m := range inserts.FindAllStringSubmatch(sql, -1) {
		need(m[1], "INSERT")
		if merges.MatchString(sql) {
			need(m[1], "SELECT", "UPDATE")
		}
		if answers.MatchString(sql) {
			need(m[1], "SELECT")
		}
	}
	for _, m := range updates.FindAllStringSubmatch(sql, -1) {
		need(m[1], "SELECT", "UPDATE")
	}
	for _, m := range deletes.FindAllStringSubmatch(sql, -1) {
		need(m[1], "SELECT", "DELETE")
	}
	for _, m := range reads.FindAllStringSubmatch(sql, -1) {
		need(m[1], "SELECT")
	}
	for _, m := range waits.FindAllStringSubmatch(sql, -1) {
		for _, table := range locked(sql, m[1]) {
			need(table, "UPDATE")
		}
	}
	return found
}

// locked are the tables that FOR UPDATE locks: that of the alias, or all that are read.
func locked(sql, alias string) (tables []string) {
	pattern := reads
	if alias != "" {
		pattern = regexp.MustCompile(`\b(rowlock\w*) AS ` + alias + `\b`)
	}
	for _, m := range pattern.FindAllStringSubmatch(sql, -1) {
		tables = append(tables, m[1])
	}
	return tables
}

// rightsIn is the same of files, of PostgreSQL and MySQL together.
func rightsIn(t *testing.T, files []string) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for _, dialect := range []string{"postgres", "mysql"} {
		for _, name := range files {
			text, err := os.ReadFile(dialect + "/" + name + ".sql")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sqlstore.CutSections(string(text)) {
				for table, rights := range rightsOf(s.SQL) {
					all[table] = append(all[table], rights...)
				}
			}
		}
	}
	for table, rights := range all {
		all[table] = slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return !slices.Contains(rights, v) })
	}
	return all
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(v string) bool { return !slices.Contains(all, v) })
}

const page = "../docs/schema.md"

// A right that no statement uses is one that an attacker of the application has for nothing.
func TestThePageHasTheRightsThatTheStatementsUse(t *testing.T) {
	var b strings.Builder
	b.WriteString("| you use | table | rights |\n|---|---|---|\n")
	for _, u := range uses {
		rights := rightsIn(t, u.files)
		if strings.HasSuffix(u.name, "without locks") {
			// What New reads before anything else: the version of the tables.
			for _, table := range []string{"rowlock_floor", "rowlock_meta"} {
				rights[table] = sqlstore.Settings{Lockless: true}.Needs(table)
			}
		}
		name := u.name
		for _, table := range slices.Sorted(maps.Keys(rights)) {
			if strings.HasSuffix(u.name, "besides") && within(rights[table], rightsIn(t, uses[0].files)[table]) {
				continue
			}
			fmt.Fprintf(&b, "| %s | `%s` | `%s` |\n", name, table, strings.Join(rights[table], ", "))
			name = ""
		}
	}
	const begins, ends = "<!-- rights: go test ./dialect -run ThePageHasTheRights -update -->\n\n", "\n<!-- end -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begins)
	was, after, closed := strings.Cut(rest, ends)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no %q … %q", page, begins, ends)
	case was == b.String():
	case *update:
		if err := os.WriteFile(page, []byte(before+begins+b.String()+ends+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from what the statements use; -update writes it:\n%s", page, b.String())
	}
}

// What Open asks for is what the statements use, table by table.
func TestOpenAsksForTheRightsThatTheStatementsUse(t *testing.T) {
	all := make(map[string][]string)
	for _, u := range uses {
		for table, rights := range rightsIn(t, u.files) {
			all[table] = append(all[table], rights...)
		}
	}
	for table, rights := range all {
		asked := sqlstore.Settings{}.Needs(table)
		for _, v := range verbs {
			if slices.Contains(rights, v) != slices.Contains(asked, v) {
				t.Errorf("%s on %s: used %t, asked for %t", v, table, slices.Contains(rights, v), slices.Contains(asked, v))
			}
		}
	}
}
