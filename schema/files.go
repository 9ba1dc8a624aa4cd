package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed migrations statements
var text embed.FS

// FS returns the migrations that Migrate runs as files for goose, with d's names filled in, for
// programs that run them among their own: those of these sets, of all if none is named. Copy them
// under the next free numbers and keep their order. Their file names mean nothing to rowlock: a
// later Migrate or Open accepts tables that were made this way.
func FS(d dialect.Dialect, sets ...Set) (fs.FS, error) {
	sets, err := named(sets)
	if err != nil {
		return nil, err
	}
	of, err := open(d)
	if err != nil {
		return nil, err
	}
	dir := "migrations/" + of.Name()
	entries, _ := text.ReadDir(dir) // each dialect has one
	files := make(fstest.MapFS, len(entries))
	for _, e := range entries {
		if set, _ := setOf(e.Name()); slices.Contains(sets, set) {
			sql, _ := text.ReadFile(dir + "/" + e.Name()) // as ReadDir has it
			filled := indexed.ReplaceAllString(of.Fill(string(sql)), `CREATE INDEX "main".$1 ON `)
			files[e.Name()] = &fstest.MapFile{Data: []byte(filled), Mode: 0o444}
		}
	}
	return files, nil
}

// open returns the dialect behind d. It refuses, before anything is sent, names under which the
// tables could not be made.
func open(d dialect.Dialect) (*sqlstore.Dialect, error) {
	if isnil.Value(d) {
		return nil, fmt.Errorf("%w: no dialect", lease.ErrConfig)
	}
	return sqlstore.Of(d), sqlstore.Of(d).CheckNames()
}

// setOf reads the name of a file: 00033_once.sql has the tables of once for version 3, and comes
// third of those for version 3.
func setOf(file string) (set Set, version int) {
	number, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
	n, _ := strconv.Atoi(number)
	return Set(name), n / 10
}

// named returns all sets if none is named.
func named(sets []Set) ([]Set, error) {
	for _, set := range sets {
		if !slices.Contains(sqlstore.AllSets, set) {
			return nil, fmt.Errorf("%w: there is no set of tables %q: the sets are %v", lease.ErrConfig, set,
				sqlstore.AllSets)
		}
	}
	if len(sets) == 0 {
		sets = sqlstore.AllSets
	}
	return slices.Clip(sets), nil
}

// indexed are an index and its table: SQLite takes the file before the index, and not before the
// table.
var indexed = regexp.MustCompile(`(?m)^CREATE INDEX (\S+) ON "main"\.`)

var gooseMark = regexp.MustCompile(`(?m)^-- \+goose .*\n+`)

// SQL returns the same files as plain SQL, for psql, Flyway, golang-migrate and others: up makes
// the tables. down does what [Down] does, as far as SQL can: docs/uninstall.md has the differences.
// Every statement ends with a semicolon at the end of a line, and no other line ends with one.
func SQL(d dialect.Dialect, sets ...Set) (up, down string, err error) {
	all, err := migrations(d, sets)
	for _, m := range all {
		up += m.up
		down = m.down + down // the last one made is removed first
	}
	return up, down, err
}

// migration is one file of FS, as plain SQL.
type migration struct {
	set      Set
	version  int
	up, down string
}

// migrations returns those of sets, in the order in which they run.
func migrations(d dialect.Dialect, sets []Set) (all []migration, err error) {
	files, err := FS(d, sets...)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.sql") // sorted
	for _, name := range names {
		sql, _ := fs.ReadFile(files, name)
		set, version := setOf(name)
		up, down, _ := strings.Cut(string(sql), "-- +goose Down\n")
		all = append(all, migration{set, version, gooseMark.ReplaceAllString(up, ""), strings.TrimLeft(down, "\n")})
	}
	return all, err
}
