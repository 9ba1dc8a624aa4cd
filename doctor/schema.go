package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const migrates = "rowlock migrate up, or schema.Migrate"

// schema compares the version of the tables with the one that this code needs.
func schema(ctx context.Context, x *examiner) (f Finding, err error) {
	f.saw("needed", sqlstore.SchemaVersion, "this version of rowlock")
	there, err := x.columns(ctx)
	if err != nil {
		return f, err
	}
	meta := x.d.Names().Prefix + "rowlock_meta"
	if x.lost != nil {
		f.saw("schema", "unknown", "the pool")
		f.raise(Critical, keytext.Error(x.lost), "name the schema of the tables in the DSN, or by dialect.Schema (--schema)")
		return f, nil
	}
	if len(there["rowlock_meta"]) == 0 {
		f.saw(meta, "missing, or not to be seen by this user", "the catalog")
		f.raise(Critical, "there are no tables of rowlock under this prefix and schema", migrates)
		return f, nil
	}
	sets, err := x.sets(ctx)
	if errors.Is(err, lease.ErrNoSchema) || errors.Is(err, lease.ErrCorrupt) {
		x.leave() // its session is still in the transaction
		f.raise(Critical, keytext.Error(err), migrates)
		return f, nil
	}
	if err != nil {
		return f, err
	}
	version := sets[sqlstore.Core].At
	f.saw("schema_version", version, meta)
	for _, set := range sqlstore.AllSets {
		v, there := sets[set]
		cure := migrates
		if v.At > sqlstore.SchemaVersion {
			cure = "deploy a newer rowlock"
		}
		if err := sqlstore.CheckVersion(set, v); there && err != nil {
			f.raise(Critical, keytext.Error(err), cure)
		}
	}
	f.fine(fmt.Sprintf("version %d", version))
	return f, nil
}

// tables compares the tables with those that the migrations make.
func tables(ctx context.Context, x *examiner) (f Finding, err error) {
	columns, err := x.columns(ctx)
	if err == nil && len(columns["rowlock_meta"]) == 0 {
		err = fmt.Errorf("%w: no tables", lease.ErrNoSchema)
	}
	if err != nil {
		return f, err
	}
	indexes, err := x.scan(ctx, "indexes", x.like()...)
	if err != nil {
		return f, err
	}
	have := make(map[string]bool)
	for _, r := range indexes {
		have[x.short(r[0])+" "+r[1]+" "+r[2]] = true
	}
	made := x.present(ctx)
	want := slices.DeleteFunc(x.expected(), func(line string) bool {
		table, _, _ := strings.Cut(line, " ")
		return !slices.Contains(made, table)
	})
	if err := x.compare(ctx, &f, want, columns, have); err != nil {
		return f, err
	}
	if err = x.alterations(ctx, &f); err == nil {
		f.saw("tables", len(columns), "the catalog")
		f.fine("columns, indexes and storage are as the migrations make them")
	}
	return f, err
}

func (x *examiner) sets(ctx context.Context) (sqlstore.Sets, error) {
	return reading(ctx, x, func(conn *sql.Conn) (sqlstore.Sets, error) {
		return sqlstore.SetsOf(ctx, conn, x.d)
	})
}

// present are the tables of the sets that the database has, as far as rowlock_meta tells.
func (x *examiner) present(ctx context.Context) []string {
	sets, err := x.sets(ctx)
	if err != nil {
		x.leave() // its session may be in a transaction that has failed
		return tableNames
	}
	return sqlstore.Tables(slices.Collect(maps.Keys(sets))...)
}

func (x *examiner) compare(
	ctx context.Context, f *Finding, want []string, columns map[string][]string, have map[string]bool,
) error {
	for _, line := range want {
		table, what, _ := strings.Cut(line, " ")
		name := x.d.Names().Prefix + table
		kind, rest, _ := strings.Cut(what, " ")
		switch {
		case len(columns[table]) == 0:
			if kind != "columns" {
				continue
			}
			if err := x.absent(ctx, f, table); err != nil {
				return err
			}
		case kind == "columns":
			x.compareColumns(f, name, strings.Split(rest, ","), columns[table])
		case have[line], have[table+" primary "+rest],
			(kind == "index" || x.d.Name() != "mysql") && have[table+" unique "+rest]: // MySQL's are named
		case kind != "index":
			f.saw(name+" ("+rest+")", "no "+kind+" index", "the catalog")
			f.raise(Critical, "the "+kind+" index of "+name+" on ("+rest+") is missing: two rows of one key, "+
				"and so two holders, can come to be", x.index(kind, name, rest))
		default:
			f.saw(name+" ("+rest+")", "no index", "the catalog")
			f.raise(Warning, "the index of "+name+" on ("+rest+") is missing: statements that use it read the "+
				"whole table", x.index(kind, name, rest))
		}
	}
	return nil
}

// absent tells a table that is missing from one that MySQL hides from a user without rights.
func (x *examiner) absent(ctx context.Context, f *Finding, table string) error {
	name := x.d.Names().Prefix + table
	lacks, err := x.lacks(ctx, table)
	switch {
	case err != nil:
		return err
	case len(lacks) > 0:
		f.saw(name, "not to be seen by this user", "the catalog")
		f.raise(Info, name+" is hidden from this user", "see the check privileges")
	default:
		f.saw(name, "missing", "the catalog")
		f.raise(Critical, "the table "+name+" is missing", "restore it from a backup; or rowlock migrate down --yes, "+
			"which keeps the tokens or says why not, and rowlock migrate up")
	}
	return nil
}

func (x *examiner) compareColumns(f *Finding, table string, want, have []string) {
	for _, column := range want {
		if slices.Contains(have, column) {
			continue
		}
		name, made, _ := strings.Cut(column, " ")
		is := "missing"
		if at := slices.IndexFunc(have, func(c string) bool { return strings.HasPrefix(c, name+" ") }); at >= 0 {
			is = have[at][len(name)+1:]
		}
		f.saw(table+"."+name, is, "the catalog")
		f.raise(Critical, "the column "+name+" of "+table+" is "+is+" where the migrations make "+made, "restore "+
			"it from a backup, or alter the table as they make it: tokens would begin again in new tables")
	}
}

func (x *examiner) index(kind, table, columns string) string {
	q := `"`
	if x.d.Name() == "mysql" {
		q = "`"
	}
	quoted := q + strings.ReplaceAll(columns, ",", q+", "+q) + q
	name := q + table + "_" + strings.ReplaceAll(columns, ",", "_") + q
	on := x.d.Names().Table(x.short(table), q)
	if x.d.Name() == "sqlite" { // takes the file before the index, and not before the table
		name, on = q+x.d.Names().Schema+q+"."+name, q+table+q
	}
	unique := "UNIQUE "
	switch {
	case kind == "primary" && x.d.Name() != "sqlite":
		return fmt.Sprintf("ALTER TABLE %s ADD PRIMARY KEY (%s);", on, quoted)
	case kind == "index":
		unique = ""
	}
	return fmt.Sprintf("CREATE %sINDEX %s ON %s (%s);", unique, name, on, quoted)
}

func (x *examiner) alterations(ctx context.Context, f *Finding) error {
	args := x.like()
	if x.d.Name() == "mysql" {
		args = append(args, args...)
	}
	rows, err := x.scan(ctx, "alterations", args...)
	for _, r := range rows {
		if !slices.Contains(tableNames, x.short(r[1])) {
			continue
		}
		f.saw(r[0]+" of "+r[1], r[2], "the catalog")
		switch r[0] {
		case "trigger":
			f.raise(Warning, "the trigger "+r[2]+" on "+r[1]+" runs with each statement, and can undo it",
				"drop the trigger, unless it leaves rows as they are")
		case "storage":
			f.raise(Critical, r[1]+" is "+r[2]+": a crash empties it, or it has no row locks; tokens start "+
				"again then", x.durable(r[1]))
		default:
			f.raise(Warning, r[1]+" has row-level security: a user from whom a row is hidden cannot lock its "+
				"key; connect as the table's owner or as a role with BYPASSRLS, or", "ALTER TABLE "+r[1]+" DISABLE ROW LEVEL SECURITY;")
		}
	}
	return err
}

func (x *examiner) durable(table string) string {
	if x.d.Name() == "mysql" {
		return "ALTER TABLE " + table + " ENGINE = InnoDB;"
	}
	return "ALTER TABLE " + table + " SET LOGGED;"
}

// like are the parameters that choose our tables in a catalog.
func (x *examiner) like() []any {
	name := x.prefix() + "rowlock"
	if x.d.Name() == "postgres" {
		return []any{name}
	}
	return []any{x.d.Names().Schema, name, name}
}

// short is a table's name without the prefix.
func (x *examiner) short(table string) string { return strings.TrimPrefix(table, x.prefix()) }

// prefix is that of the tables as the catalog spells it.
func (x *examiner) prefix() string {
	if x.setting("lower_case_table_names") == "1" {
		return strings.ToLower(x.d.Names().Prefix)
	}
	return x.d.Names().Prefix
}

// columns returns the columns of our tables.
func (x *examiner) columns(ctx context.Context) (map[string][]string, error) {
	rows, err := x.scan(ctx, "columns", x.like()...)
	all := make(map[string][]string)
	for _, r := range rows {
		if slices.Contains(tableNames, x.short(r[0])) {
			all[x.short(r[0])] = append(all[x.short(r[0])], r[1])
		}
	}
	return all, err
}

// expected are the lines of the .tables file: a table, "columns", "primary", "unique" or "index",
// and columns.
func (x *examiner) expected() []string {
	text, _ := files.ReadFile(x.d.Name() + ".tables")
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
