// Package schema makes rowlock's tables: from Go with [Migrate], or with any migration tool from
// the same files ([FS], [SQL]).
//
// rowlock_meta has the version of the tables, whichever tool made them. Migrate goes by it and
// keeps no other record, so that it cannot disagree with the tables and never touches the
// application's goose_db_version.
package schema

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Version is the version of the tables that Migrate leads to. rowlock_meta then has it as
// schema_version.
const Version = sqlstore.SchemaVersion

// first is the version that the first migration leads to.
const first = sqlstore.FirstVersion

// Set names tables that are made together, so that a database has no tables for what no program
// uses. Each set has a version of its own in rowlock_meta, under schema_version/once and so on.
type Set = sqlstore.Set

const (
	// Core is six tables: locks, fences, queues, cycles of waits, eras, forced releases and their
	// records. Every other set needs it.
	Core = sqlstore.Core
	// Shared is for RLock, and for semaphores and other limits. Every client of a database that has
	// it needs the rights on it.
	Shared = sqlstore.Shared
	// Once is for packages once and oncehttp.
	Once = sqlstore.Once
	// Latch is for package latch.
	Latch = sqlstore.Latch
	// ForUpdate is for package forupdate.
	ForUpdate = sqlstore.ForUpdate
	// Trace is for Config.Trace. Without it, Client.Trace lists forced releases alone.
	Trace = sqlstore.Trace
)

// DB is what Migrate needs of a pool: *sql.DB and *sqlx.DB have it.
type DB = dialect.Pool

// Migrate makes the tables of these sets and of [Core], of all sets if none is named, and brings
// them and every set that is there to [Version]. A later Migrate adds sets; clients learn at Open
// which there are. It may run in any number of processes at once, and any number of times: the
// first makes the tables, the others wait for it. If the tables are up to date it only reads. If it
// is interrupted it leaves nothing behind. MySQL and MariaDB cannot roll back a CREATE TABLE;
// there, running it again completes the work.
//
// Clients may go on meanwhile. A change of a table that is in use, by a backup or by a long
// transaction, waits for it for a second at most, because every later statement on the table waits
// behind the change. Then Migrate undoes what it has done, pauses for 1 to 5 s with no lock, and
// tries again. It tells so to slog.Default, at level Info. The deadline of ctx says for how long it
// tries, which is a minute without one. Then the error is lease.ErrBusy, and names the sessions
// that keep it from running, as far as the user may see them.
//
// The schema or database that d names must exist, and the user must be allowed to create tables in
// it. Its errors are those of rowlock.Open: lease.ErrWrongDialect if the database is another
// product, lease.ErrNoSchema if the schema or database is missing, lease.ErrPrivilege,
// lease.ErrReadOnly. Tables of a newer rowlock stay as they are: the error wraps
// lease.ErrSchemaVersion. Another program's table under a name of rowlock's is lease.ErrConfig.
//
// db is any pool with the method Conn of *sql.DB, such as *sqlx.DB. Of another, as *bun.DB, pass
// its field DB.
func Migrate(ctx context.Context, db DB, d dialect.Dialect, sets ...Set) error {
	return migrate(ctx, "schema.Migrate", db, d, sets)
}

func migrate(ctx context.Context, caller string, db DB, d dialect.Dialect, sets []Set) error {
	named, err := named(sets)
	if err != nil {
		return err
	}
	s, err := newSession(ctx, caller, db, d)
	if err != nil {
		return err
	}
	if s.named = append(named, Core); s.current(ctx, db) {
		return nil
	}
	return s.run(ctx, db, "migrate", s.up)
}

// up runs the migrations that the tables lack. Then it looks at what they have made: a trigger, a
// policy or a setting can have a statement do less than it says.
func (s *session) up(ctx context.Context, conn *sql.Conn) error {
	has, err := s.read(ctx, conn)
	if err != nil {
		return err
	}
	var unmade, there []string
	all, err := migrations(s.dialect, s.wanted(has))
	for _, m := range all {
		switch at := has[m.set].At; {
		case at == 0:
			unmade = append(unmade, sqlstore.Tables(m.set)...)
		case err == nil && (at > Version || at < first):
			err = sqlstore.CheckVersion(m.set, has[m.set])
		}
	}
	if err == nil {
		there, err = s.present(ctx, conn, unmade)
	}
	for _, m := range all {
		if err == nil && m.version > has[m.set].At {
			err = s.each(ctx, conn, m.up, there)
		}
	}
	if err == nil {
		_, err = s.dialect.ProbeTables(ctx, conn)
	}
	return err
}

// present returns those of tables, which have no version, that are there: a dump of the schema
// alone has them, and a way down that was cut short. They stay, with their rows and the rights
// granted on them, and get what else is missing. It refuses another program's table under a name of
// ours.
func (s *session) present(ctx context.Context, conn *sql.Conn, tables []string) (names []string, err error) {
	for column := range strings.FieldsSeq(ours) {
		table, _, _ := strings.Cut(column, ".")
		if !slices.Contains(tables, table) {
			continue
		}
		own := false
		there, err := s.exists(ctx, conn, table)
		if err == nil && there {
			own, err = s.exists(ctx, conn, column)
		}
		switch {
		case err != nil:
			return nil, err
		case own:
			names = append(names, s.dialect.Names().Prefix+table)
		case there:
			return nil, fmt.Errorf("%w: the table %s is there and not rowlock's: give rowlock's tables another "+
				"prefix (dialect.Prefix) or schema", lease.ErrConfig, s.dialect.Fill(table))
		}
	}
	return names, nil
}

// wanted are the sets that were named, and those that are there.
func (s *session) wanted(has sqlstore.Sets) (sets []Set) {
	for _, set := range sqlstore.AllSets {
		if _, there := has[set]; there || slices.Contains(s.named, set) {
			sets = append(sets, set)
		}
	}
	return sets
}

// creates finds the table of a statement that fails where it is there. MySQL's never do.
var creates = regexp.MustCompile(`(?m)^CREATE (?:TABLE|INDEX.* ON) (?:"[^"]+"\.)?"([^"]+)" \(`)

// each runs the statements of a migration one by one, but those that make what is there. A driver
// takes several at once only if its DSN says so.
func (s *session) each(ctx context.Context, conn *sql.Conn, statements string, there []string) error {
	for statement := range strings.SplitAfterSeq(statements, ";\n") {
		made := creates.FindStringSubmatch(statement)
		if strings.TrimSpace(statement) == "" || made != nil && slices.Contains(there, made[1]) {
			continue
		}
		if err := s.exec(ctx, conn, statement); err != nil {
			return err
		}
	}
	return nil
}
