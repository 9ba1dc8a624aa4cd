package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// Set names tables that are made together. rowlock_meta has the version of each set that a database
// has: schema_version of Core, and schema_version/once of Once.
type Set string

const (
	Core      Set = "core"
	Shared    Set = "shared"
	Once      Set = "once"
	Latch     Set = "latch"
	ForUpdate Set = "forupdate"
	Trace     Set = "trace"
)

// AllSets is every set, in the order in which they are made.
var AllSets = []Set{Core, Shared, Once, Latch, ForUpdate, Trace}

// SetTables are the tables of each set. Those in which schema.Down keeps tokens come first.
var SetTables = map[Set][]string{
	Core: {
		"rowlock_floor", "rowlock_meta", "rowlock", "rowlock_queue", "rowlock_wait", "rowlock_forced",
	},
	Shared:    {"rowlock_member", "rowlock_limit"},
	Once:      {"rowlock_once"},
	Latch:     {"rowlock_latch", "rowlock_party"},
	ForUpdate: {"rowlock_hold"},
	Trace:     {"rowlock_trace"},
}

// Tables are those of these sets.
func Tables(sets ...Set) (all []string) {
	for _, set := range sets {
		all = append(all, SetTables[set]...)
	}
	return all
}

// SchemaVersion is the version of rowlock's tables that this version of rowlock works with, and
// FirstVersion the first that is released.
const SchemaVersion, FirstVersion = 3, 3

// TablesVersion is the version of tables, and the oldest version of the code that may use them.
type TablesVersion struct{ At, From int }

// Sets has the version of each set of tables that a database has.
type Sets map[Set]TablesVersion

// Need returns an error that wraps lease.ErrNoSchema if the database lacks the set, and
// lease.ErrSchemaVersion if this code does not know its version.
func (s Sets) Need(set Set) error {
	if v, ok := s[set]; ok {
		return CheckVersion(set, v)
	}
	return fmt.Errorf("%w: the database has no tables of the set %s: make them (rowlock migrate up --set %s, "+
		"or schema.Migrate), and open again", lease.ErrNoSchema, set, set)
}

// SetsOf reads the versions of rowlock's tables. It returns an error that wraps lease.ErrNoSchema
// if there is none of Core. MySQL's LIMIT is so that no session's sql_select_limit cuts it.
func SetsOf(ctx context.Context, conn *sql.Conn, d Texts) (Sets, error) {
	rows, err := conn.QueryContext(ctx, d.Text("schema-version"))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sets := make(Sets)
	for rows.Next() {
		var at, from, name []byte
		if err := rows.Scan(&at, &from, &name); err != nil {
			return nil, err
		}
		set, v := Core, TablesVersion{}
		if _, other, ok := strings.Cut(string(name), "/"); ok {
			set = Set(other)
		}
		if v.At, err = strconv.Atoi(string(at)); err != nil {
			return nil, fmt.Errorf("%w: rowlock_meta says %s %q, which is no number; set it to the version the "+
				"tables have", lease.ErrCorrupt, name, at)
		}
		v.From = compatibleFrom(from, v.At)
		sets[set] = v
	}
	if _, ok := sets[Core]; !ok && rows.Err() == nil {
		return nil, fmt.Errorf("%w: rowlock_meta has no schema_version; run schema.Migrate", lease.ErrNoSchema)
	}
	return sets, rows.Err()
}

// compatibleFrom returns the number of that row, or none if there is no row. Tables without a
// number there are for no code.
func compatibleFrom(text []byte, none int) int {
	n, err := strconv.Atoi(string(text))
	switch {
	case text == nil:
		return none
	case err != nil:
		return math.MaxInt
	}
	return n
}

// CheckVersion returns an error that wraps lease.ErrSchemaVersion unless this code may use the
// tables: older ones it refuses, and newer ones if they do.
func CheckVersion(set Set, v TablesVersion) error {
	of := ""
	if set != Core {
		of = " of the set " + string(set)
	}
	switch {
	case 0 < v.At && v.At < FirstVersion:
		return fmt.Errorf("%w: the tables%s are version %d, of a rowlock that was never released: stop its "+
			"clients, remove them (schema.Uninstall), and run schema.Migrate", lease.ErrSchemaVersion, of, v.At)
	case v.At < SchemaVersion:
		return fmt.Errorf("%w: the tables%s are version %d and this rowlock needs %d; run schema.Migrate",
			lease.ErrSchemaVersion, of, v.At, SchemaVersion)
	case v.At > SchemaVersion && v.From > SchemaVersion:
		return fmt.Errorf("%w: the tables%s are version %d and this rowlock knows only %d; upgrade rowlock",
			lease.ErrSchemaVersion, of, v.At, SchemaVersion)
	}
	return nil
}

// CheckFrom is CheckVersion of tables that are open, by their compatible_from.
func CheckFrom(text []byte) error {
	return CheckVersion(Core, TablesVersion{max(SchemaVersion, compatibleFrom(text, 0)), SchemaVersion + 1})
}
