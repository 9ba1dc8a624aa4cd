package schema

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"
	"testing/fstest"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

//go:embed migrations statements
var text embed.FS

// FS returns the goose migrations that Migrate runs, with d's names filled in, for programs that
// run them among their own. Copy them under the next free numbers and keep their order. Their file
// names mean nothing to rowlock: a later Migrate or Open accepts tables that were made this way.
func FS(d dialect.Dialect) (fs.FS, error) {
	of, err := open(d)
	if err != nil {
		return nil, err
	}
	return migrations(of, func(text string) string { return text })
}

func migrations(d *sqlstore.Dialect, change func(text string) string) (fs.FS, error) {
	dir := "migrations/" + d.Name()
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
		files[e.Name()] = &fstest.MapFile{Data: []byte(change(indexed.ReplaceAllString(d.Fill(string(sql)), `CREATE INDEX "main".$1 ON `))), Mode: 0o444}
	}
	return files, nil
}

// indexed are an index and its table: SQLite takes the file before the index, and not before the
// table.
var indexed = regexp.MustCompile(`(?m)^CREATE INDEX (\S+) ON "main"\.`)

// marked says where each statement begins and ends. goose would find out by itself, with a buffer
// of 4 MB for each line.
func marked(text string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if !inside && line != "\n" && !strings.HasPrefix(line, "--") {
			out.WriteString("-- +goose StatementBegin\n")
			inside = true
		}
		out.WriteString(line)
		if inside && strings.HasSuffix(line, ";\n") {
			out.WriteString("-- +goose StatementEnd\n")
			inside = false
		}
	}
	return out.String()
}

var gooseMark = regexp.MustCompile(`(?m)^-- \+goose .*\n+`)

// SQL returns the same as plain SQL, for psql, Flyway, golang-migrate and others: up makes the
// tables, down removes them. Every statement ends with a semicolon at the end of a line, and no
// other line ends with one.
func SQL(d dialect.Dialect) (up, down string, err error) {
	files, err := FS(d)
	if err != nil {
		return "", "", err
	}
	names, err := fs.Glob(files, "*.sql") // sorted
	for _, name := range names {
		sql, err := fs.ReadFile(files, name)
		if err != nil {
			return "", "", err
		}
		u, d, _ := strings.Cut(string(sql), "-- +goose Down\n")
		up += gooseMark.ReplaceAllString(u, "")
		down = strings.TrimLeft(d, "\n") + down // the last one made is removed first
	}
	return up, down, err
}
