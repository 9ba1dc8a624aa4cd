package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// fewer are the rights of a database user on tables that need not all four.
var fewer = map[string][]string{
	"rowlock_floor": {"SELECT", "UPDATE"}, "rowlock_limit": {"SELECT", "INSERT", "UPDATE"},
	"rowlock_forced": {"SELECT", "INSERT"}, "rowlock_trace": {"SELECT", "INSERT", "DELETE"},
}

// sweeping are the rights that only sweeping needs, if a floor is read without a lock.
var sweeping = map[string]string{"rowlock": "DELETE", "rowlock_floor": "UPDATE"}

// Needs returns the rights that these settings need on a table.
func (s Settings) Needs(table string) []string {
	rights, some := fewer[table]
	if !some {
		rights = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	}
	switch {
	case s.Lockless && (table == "rowlock_floor" || table == "rowlock_meta"):
		return []string{"SELECT"}
	case s.Unswept && sweeping[table] != "":
		return slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == sweeping[table] })
	}
	return rights
}

// core are the tables of Core that Open looks at. MySQL hides a table from a user without rights on
// it, so that it would look missing to one who locks nothing.
func (s Settings) core() []string {
	if s.Lockless {
		return []string{"rowlock_floor", "rowlock_meta"}
	}
	return []string{"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_wait", "rowlock_meta"}
}

// besides are the sets that the user needs besides Core. A client that locks needs Shared wherever
// it is, because it meets keys that readers have left.
func (s Settings) besides(has Sets) (sets []Set) {
	if s.Set != "" {
		sets = append(sets, s.Set)
	}
	if _, shared := has[Shared]; shared && !s.Lockless {
		sets = append(sets, Shared)
	}
	return sets
}

// tables are those that Open looks at.
func (s Settings) tables(has Sets) []string {
	return append(s.core(), Tables(s.besides(has)...)...)
}

// found is tables of the database's own sets, as far as the user may read which there are.
func (d *Dialect) found(ctx context.Context, conn *sql.Conn) []string {
	var has Sets
	lacks, err := d.Lacks(ctx, conn, "rowlock_meta") // a refusal would end a transaction
	if err == nil && !slices.Contains(lacks, "SELECT") {
		has, _ = SetsOf(ctx, conn, d)
	}
	return d.settings.tables(has)
}

// Lacking returns an error that wraps lease.ErrPrivilege and names every right that the user lacks
// on every table, so that they can be granted at once. It is nil if none is found missing.
func (d *Dialect) Lacking(ctx context.Context, conn *sql.Conn) error {
	var lacks, grants []string
	for _, table := range d.found(ctx, conn) {
		rights, err := d.Lacks(ctx, conn, table)
		if err != nil {
			return err
		}
		if len(rights) > 0 {
			on := strings.Join(rights, ", ") + " ON " + d.Fill(table)
			lacks = append(lacks, strings.Replace(on, " ON ", " on ", 1))
			grants = append(grants, "GRANT "+on+" TO the user")
		}
	}
	if lacks == nil {
		return nil
	}
	return fmt.Errorf("%w: the database user lacks %s; %s", lease.ErrPrivilege,
		strings.Join(lacks, " and "), strings.Join(grants, "; "))
}

// Grant is the statement that gives the user all that it needs on table.
func (d *Dialect) Grant(table string) string {
	return "GRANT " + strings.Join(d.settings.Needs(table), ", ") + " ON " + d.Fill(table) + " TO the user"
}

// hidden reports whether the user lacks all rights on table and has some on another. A server that
// hides a table from a user without rights on it then calls it missing.
func (d *Dialect) hidden(ctx context.Context, conn *sql.Conn, table string) bool {
	whole := func(table string) bool {
		rights, err := d.Lacks(ctx, conn, table)
		return err == nil && len(rights) > 0 && len(rights) == len(d.settings.Needs(table))
	}
	return whole(table) && slices.ContainsFunc(d.settings.core(), func(t string) bool { return !whole(t) })
}

// orLacking returns what Lacking finds missing, and otherwise err.
func (d *Dialect) orLacking(ctx context.Context, conn *sql.Conn, err error) error {
	if all := d.Lacking(ctx, conn); errors.Is(all, lease.ErrPrivilege) {
		return all
	}
	return err
}

// ExplainPrivilege returns err, unless it is about a privilege: a statement that was refused tells
// of one right alone. Then it returns Lacking, or err with all that is needed if nothing is found
// missing.
func ExplainPrivilege(ctx context.Context, pool adapter.Pool, d *Dialect, err error) error {
	if !errors.Is(err, lease.ErrPrivilege) {
		return err
	}
	err = fmt.Errorf("%w; the user needs %s", err, d.rights())
	if conn, failed := pool.Conn(ctx); failed == nil {
		defer conn.Close()
		err = d.orLacking(ctx, conn, err)
	}
	return err
}

// rights names what the user needs on every table.
func (d *Dialect) rights() string {
	var all []string
	for _, table := range d.settings.tables(nil) {
		all = append(all, strings.Join(d.settings.Needs(table), ", ")+" on "+d.Names().Prefix+table)
	}
	return strings.Join(all, " and ")
}
