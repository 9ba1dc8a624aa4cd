package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// mutant is one guard broken, on one database.
type mutant struct {
	// db is "sqlite", "postgres", "mariadb" or "mysql".
	db string
	// file is from the repository's root.
	file      string
	statement string
	guard     string
	// was and now are the whole file without and with the mutation.
	was, now string
	// part is what of now tells this mutant from any other: the statement, or the whole Go file.
	part string
	// only is how many steps of its tests to run; 0: all.
	only int
}

// name is what -match and explained.txt know the mutant by.
func (m *mutant) name() string {
	return fmt.Sprintf("%s %s:%s: %s", m.db, m.file, m.statement, m.guard)
}

// databases are in the order in which they are attacked: SQLite needs no server.
var databases = []string{"sqlite", "postgres", "mariadb", "mysql"}

// folder is the dialect's.
func folder(db string) string {
	if db == "mariadb" {
		return "mysql"
	}
	return db
}

// aside are files whose guards no lock stands on: what an operator reads, what only makes waiting
// shorter, and what needs servers of its own.
var aside = []string{"doctor", "trace", "graph", "hints", "evict", "group"}

// listings are the statements that list and decide nothing.
var listings = []string{"inspect", "inspect-keys", "force-list", "force-list-key", "force-find"}

// mutantsOf returns the mutants of a database: of its .sql files, and of the SQL in Go.
func mutantsOf(root, db string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, "dialect", folder(db), "*.sql"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no .sql files of %s below %s: %w", db, root, err)
	}
	var out []mutant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if slices.Contains(aside, strings.TrimSuffix(filepath.Base(file), ".sql")) {
			continue
		}
		name, _ := filepath.Rel(root, file)
		out = append(out, mutantsIn(db, filepath.ToSlash(name), string(text))...)
	}
	inGo, err := mutantsInGo(root, db)
	return append(out, inGo...), err
}

// unread reports whether a server has another statement in the place of one of its dialect's:
// MariaDB has era-session-mariadb, and MySQL era-session.
func unread(db, statement, text string) bool {
	const own = "-mariadb"
	return db == "mysql" && strings.HasSuffix(statement, own) ||
		db == "mariadb" && strings.Contains(text, "-- name: "+statement+own+"\n")
}

func mutantsIn(db, file, text string) (out []mutant) {
	at := 0
	for _, s := range sqlstore.CutSections(text) {
		mark := "-- name: " + s.Name + "\n"
		at += strings.Index(text[at:], mark) + len(mark)
		if slices.Contains(listings, s.Name) || unread(db, s.Name, text) {
			continue
		}
		end := len(text)
		if next := strings.Index(text[at:], "\n-- name: "); next >= 0 {
			end = at + next
		}
		for _, g := range guards(text[at:end]) {
			if g.server != "" && g.server != db {
				continue
			}
			part := text[at:at+g.from] + g.broken + text[at+g.to:end]
			out = append(out, mutant{
				db: db, file: file, statement: s.Name, guard: g.name, was: text,
				now: text[:at] + part + text[end:], part: part,
			})
		}
	}
	return out
}
