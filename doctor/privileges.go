package doctor

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// features are what a user of each table can do. What every client needs comes first.
var features = []struct {
	name   string
	core   bool
	tables []string
}{
	{"Open, and every lock", true, []string{
		"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_wait", "rowlock_meta",
	}},
	{"Open where keys can be shared", true, []string{"rowlock_member", "rowlock_limit"}},
	{"latches and barriers", false, []string{"rowlock_latch", "rowlock_party"}},
	{"package once", false, []string{"rowlock_once"}},
	{"package forupdate", false, []string{"rowlock_hold"}},
	{"forced releases", false, []string{"rowlock_forced"}},
	{"the trace (Config.Trace)", false, []string{"rowlock_trace"}},
}

// tableNames are all tables of this version.
var tableNames = sqlstore.Tables(sqlstore.AllSets...)

// privileges names what fails for want of which right.
func privileges(ctx context.Context, x *examiner) (f Finding, err error) {
	columns, err := x.columns(ctx)
	if err != nil {
		return f, err
	}
	made := x.present(ctx)
	for _, feature := range features {
		for _, table := range feature.tables {
			if len(columns[table]) == 0 && (x.d.Name() != "mysql" || !slices.Contains(made, table)) {
				continue // the check of the tables has it
			}
			if err := x.rights(ctx, &f, feature.name, feature.core, table); err != nil {
				return f, err
			}
		}
	}
	f.saw("tables looked at", len(columns), "the catalog")
	if err = x.evicts(ctx, &f); err == nil {
		f.fine("the user has every right that rowlock uses")
	}
	return f, err
}

func (x *examiner) rights(ctx context.Context, f *Finding, feature string, core bool, table string) error {
	lacks, err := x.lacks(ctx, table)
	if err != nil || len(lacks) == 0 {
		return err
	}
	rights := strings.Join(lacks, ", ")
	f.saw("missing on "+x.d.Names().Prefix+table, rights, "the server")
	f.raise(either(core, Critical, Info), feature+" fails: the user lacks "+rights+" on "+x.d.Names().Prefix+table,
		"GRANT "+rights+" ON "+x.d.Fill(table)+" TO the user;")
	return nil
}

func (x *examiner) lacks(ctx context.Context, table string) ([]string, error) {
	return reading(ctx, x, func(conn *sql.Conn) ([]string, error) { return x.d.Lacks(ctx, conn, table) })
}

// evicts looks for what is needed to end the session of a client that has vanished.
func (x *examiner) evicts(ctx context.Context, f *Finding) error {
	if x.d.Evictor == nil {
		return nil
	}
	grant, err := reading(ctx, x, func(conn *sql.Conn) (string, error) {
		return x.d.Evictor.MayEvict(ctx, conn)
	})
	if err == nil && grant != "" {
		if strings.HasPrefix(grant, "GRANT ") {
			grant += ";"
		}
		f.saw("right to end sessions", "missing", "the server")
		f.raise(Info, "a client that vanished in a fenced transaction keeps its key until the server "+
			"notices, which can take hours: Config.EvictAfter has no effect", grant)
	}
	return err
}
