package sqlstore

import (
	"regexp"
	"strings"
)

// Section is one statement of a .sql file.
type Section struct {
	// Name is what the "-- name:" line says.
	Name string
	// SQL is the statement without comments and without a semicolon. It is empty if the dialect
	// needs no such statement.
	SQL string
	// Body is SQL as the file has it, behind its comments.
	Body string

	blanks [][]int // of SQL, where names are filled in
}

var (
	sectionMark    = regexp.MustCompile(`(?m)^-- name: ([a-z-]+)\n`)
	sectionComment = regexp.MustCompile(`(?m)^\s*--.*\n|\s--\s.*$`)
)

// CutSections returns the statements of a file in the file's order.
func CutSections(text string) []Section {
	marks := sectionMark.FindAllStringSubmatchIndex(text, -1)
	out := make([]Section, len(marks))
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		body := text[m[1]:end]
		sql := strings.Trim(sectionComment.ReplaceAllString(body, ""), " \n;")
		out[i] = Section{text[m[2]:m[3]], sql, body, blank.FindAllStringIndex(sql, -1)}
	}
	return out
}

// sectionVerb is the first word of a statement. MariaDB alone executes what is inside /*M! … */
// before it. What is searched is kept short, because each client labels all its statements.
var sectionVerb = regexp.MustCompile(`^(?:/\*M!.*?\*/ )?[A-Z]+\b`)

// LabelSection returns sql with a comment that names the section, after the statement's verb.
// Servers keep the comment there in what they show and log. It does not stand before the verb,
// because Postgres 18 and later cut that off in pg_stat_statements, and because poolers and proxies
// read the verb first: Pgpool-II sends no statement to a replica that begins with a comment. It
// does not stand at the end, because servers cut long statements off there. MySQL and MariaDB take
// the comment for neither a hint nor an executable one, because it begins with neither + nor !.
//
// What has no verb is no statement, and stays as it is.
func LabelSection(name, sql string) string {
	at := sectionVerb.FindStringIndex(sql[:min(len(sql), 99)])
	if at == nil {
		return sql
	}
	return sql[:at[1]] + " /* rowlock " + name + " */" + sql[at[1]:]
}
