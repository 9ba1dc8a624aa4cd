package schema

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"
	"testing/fstest"

	"github.com/rowlockdb/rowlock/dialect"
)

//go:embed migrations statements
var text embed.FS

// FS returns the migrations that Migrate runs as files for goose, with d's names filled in, for
// programs that run them among their own. Copy them under the next free numbers and keep their
// order. Their file names mean nothing to rowlock: a later Migrate or Open accepts tables that were
// made this way.
func FS(d dialect.Dialect) (fs.FS, error) {
	of, err := open(d)
	if err != nil {
		return nil, err
	}
	dir := "migrations/" + of.Name()
	entries, err := text.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := make(fstest.MapFS, len(entries))
	for _, e := range entries {
		sql, err := text.ReadFile(dir + "/" + e.Name())
		if err != nil {
			return nil, err
		}
		filled := indexed.ReplaceAllString(of.Fill(string(sql)), `CREATE INDEX "main".$1 ON `)
		files[e.Name()] = &fstest.MapFile{Data: []byte(filled), Mode: 0o444}
	}
	return files, nil
}

// indexed are an index and its table: SQLite takes the file before the index, and not before the
// table.
var indexed = regexp.MustCompile(`(?m)^CREATE INDEX (\S+) ON "main"\.`)

var gooseMark = regexp.MustCompile(`(?m)^-- \+goose .*\n+`)

// SQL returns the same as plain SQL, for psql, Flyway, golang-migrate and others: up makes the
// tables, down removes them. Every statement ends with a semicolon at the end of a line, and no
// other line ends with one.
func SQL(d dialect.Dialect) (up, down string, err error) {
	all, err := migrations(d)
	for _, m := range all {
		up += m.up
		down = m.down + down // the last one made is removed first
	}
	return up, down, err
}

// migration is one file of FS, as plain SQL.
type migration struct{ up, down string }

// migrations returns those to each version, from first on.
func migrations(d dialect.Dialect) (all []migration, err error) {
	files, err := FS(d)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.sql") // sorted
	for _, name := range names {
		sql, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		up, down, _ := strings.Cut(string(sql), "-- +goose Down\n")
		all = append(all, migration{gooseMark.ReplaceAllString(up, ""), strings.TrimLeft(down, "\n")})
	}
	return all, err
}
