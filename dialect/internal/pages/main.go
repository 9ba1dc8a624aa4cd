// Pages writes docs/sql: a page for each dialect that lists its statements, what runs each of them,
// and how often. The names and comments come from the .sql files, the sentences from calls.txt. It
// also writes examples/languages/*.sql: the few statements that programs in other languages need.
// It runs with: go generate ./dialect
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

func main() {
	root := flag.String("root", "..", "the repository's folder")
	flag.Parse()
	for _, d := range dialects {
		text, err := page(*root, d)
		if err == nil {
			err = os.WriteFile(d.file(*root), []byte(text), 0o644)
		}
		if err == nil {
			text, err = languages(*root, d)
		}
		if err == nil {
			err = os.WriteFile(d.borrowedFile(*root), []byte(text), 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

var head, dashes = regexp.MustCompile(`^(?:--.*\n)+`), regexp.MustCompile(`(?m)^-- ?`)

// comment is the text of the comment lines that a section begins with, without dashes.
func comment(body string) string {
	return strings.TrimSpace(dashes.ReplaceAllString(head.FindString(body), ""))
}

// room is a dialect and how an operator of its server finds the statements.
type room struct {
	name, title, find string
}

func (r room) file(root string) string { return filepath.Join(root, "docs", "sql", r.name+".md") }

var dialects = []room{
	{"mysql", "MySQL and MariaDB", `The server keeps the comment in the slow log, in the general log and in the columns SQL_TEXT and
QUERY_SAMPLE_TEXT of performance_schema. It removes comments from DIGEST_TEXT. Statements that
differ in their comment alone, as cas-raise and fence-at-token do, share a digest and appear under
one name. This query names the statements that took longest:

` + "```sql" + `
SELECT query_sample_text, count_star, sum_timer_wait DIV 1000000000 AS ms
FROM performance_schema.events_statements_summary_by_digest
WHERE query_sample_text LIKE '%/* rowlock %' ORDER BY sum_timer_wait DESC LIMIT 20;
` + "```" + `
`},
	{"postgres", "Postgres", `The server keeps the comment in pg_stat_activity, in pg_stat_statements and in its log. Statements
that differ in their comment alone, as cas-raise and fence-at-token do, are one entry of
pg_stat_statements, under the name of the first. This query names the statements that took longest:

` + "```sql" + `
SELECT substring(query FROM '/\* rowlock ([a-z-]+) \*/') AS statement, calls, total_exec_time AS ms
FROM pg_stat_statements WHERE query LIKE '%/* rowlock %' ORDER BY ms DESC LIMIT 20;
` + "```" + `
`},
	{"sqlite", "SQLite", `SQLite has no server. A driver that traces statements shows the comment.
`},
}

const intro = `Each statement that rowlock sends carries its name as a comment after the verb, as in
` + "`SELECT /* rowlock look */ …`" + `. Below, each name is followed by the call that runs the
statement and how often, and by the comment of the source, which begins with the parameters in
order. Open also runs most statements once, on a key of its own, to see that the user has the
rights. Every statement may run again after an error.
[The golden listing](../../dialect/testdata/%s.golden.sql) has the full texts.

Not listed are the settings of a new session, what Open asks about the server, the driver's own
BEGIN, COMMIT and ROLLBACK, and the statements that packages forupdate and optimistic build for the
application's tables.

`

// sources returns the .sql files of a dialect. What every lock runs comes first.
func (r room) sources(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "dialect", r.name, "*.sql"))
	first := filepath.Join(root, "dialect", r.name, "statements.sql")
	files = slices.DeleteFunc(files, func(file string) bool { return file == first })
	files = append([]string{first}, files...)
	around := filepath.Join(root, "schema", "statements")
	return append(files, filepath.Join(around, "all.sql"), filepath.Join(around, r.name+".sql")), err
}

// page returns the text of one page.
func page(root string, r room) (string, error) {
	files, err := r.sources(root)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("<!-- Written by go generate ./dialect from the .sql files and calls.txt. -->\n\n")
	fmt.Fprintf(&b, "# Statements on %s\n\n", r.title)
	fmt.Fprintf(&b, intro, r.name)
	b.WriteString(r.find)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		from, err := filepath.Rel(root, file)
		if err != nil {
			return "", err
		}
		from = filepath.ToSlash(from)
		fmt.Fprintf(&b, "\n## [%s](../../%s)\n", from, from)
		for _, c := range sqlstore.CutSections(string(text)) {
			runs := sentence(r.name, c.Name)
			if runs == "" {
				return "", fmt.Errorf("%s: calls.txt does not say what runs %q", from, c.Name)
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s", c.Name, wrap(runs))
			for _, paragraph := range strings.Split(comment(c.Body), "\n\n") {
				if paragraph != "" {
					fmt.Fprintf(&b, "\n%s", wrap(escape.Replace(paragraph)))
				}
			}
		}
	}
	return b.String(), nil
}

func sentence(dialect, name string) string {
	if s, ok := calls[dialect+"/"+name]; ok {
		return s
	}
	return calls[name]
}

// escape keeps Markdown from reading the comments' signs as its own.
var escape = strings.NewReplacer("*", `\*`, "<", `\<`)

// columns is the width of the pages.
const columns = 100

// wrap breaks text into lines.
func wrap(text string) string {
	var b strings.Builder
	n := 0
	for _, word := range strings.Fields(text) {
		length := len([]rune(word))
		switch {
		case n == 0:
		case n+1+length > columns:
			b.WriteByte('\n')
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += length
	}
	return b.String() + "\n"
}
