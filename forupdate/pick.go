package forupdate

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/rowlockdb/rowlock/lease"
)

// Queue says which rows of your own table may be picked.
type Queue struct {
	// Table is its name, or "schema.name". A name without a schema is found as the transaction's
	// own session finds it.
	Table string
	// Where is a condition in SQL, with the database's own placeholders for Args ($1 on PostgreSQL,
	// ? elsewhere). Empty means any row. It goes into the statement as it is, so never build it
	// from a user's input. It should have an index: at REPEATABLE READ MySQL locks every row that
	// it reads, matching or not, and other pickers skip those rows.
	Where string
	Args  []any
	// OrderBy is the text after ORDER BY, in SQL as Where. Empty means any order.
	OrderBy string
	// Limit is the largest number of rows to pick, at least 1.
	Limit int
}

// Pick locks the next unlocked rows until tx ends, and reads them into dest, a pointer to a slice
// of structs. The columns are the fields' `db` tags, or their names in lower case, as with sqlx and
// optimistic.Table. It never waits for another picker, and no two pick the same row. Delete or mark
// the rows in the same transaction.
//
// On SQLite it takes the file's write lock first, as Lock does, so that pickers run one after the
// other.
func (l *Locker) Pick(ctx context.Context, tx Tx, dest any, q Queue) error {
	if err := checkCall(ctx, tx); err != nil {
		return err
	}
	columns, err := l.columns(dest)
	if err != nil {
		return err
	}
	query, err := l.pick(q, columns)
	if err != nil {
		return err
	}
	what := "pick from " + q.Table
	if l.wholeFile() {
		if _, err := l.lock(ctx, tx, request{what: what}); err != nil {
			return err
		}
	}
	rows, err := tx.QueryContext(ctx, l.d.Skipping(query), q.Args...)
	if err != nil {
		return l.explain(ctx, what, "asked once", err)
	}
	defer rows.Close()
	reflect.ValueOf(dest).Elem().SetLen(0)
	return l.explain(ctx, what, "asked once", sqlx.StructScan(rows, dest))
}

func (l *Locker) pick(q Queue, columns []string) (string, error) {
	table, err := l.d.Quote(q.Table)
	if err != nil {
		return "", err
	}
	if q.Limit < 1 {
		return "", fmt.Errorf("%w: Limit (%d) must be at least 1", lease.ErrConfig, q.Limit)
	}
	var b strings.Builder
	for i, c := range columns {
		columns[i] = table + "." + c // SQLite takes an unknown column alone for a string
	}
	fmt.Fprintf(&b, `SELECT %s FROM %s`, strings.Join(columns, ", "), table)
	if q.Where != "" {
		fmt.Fprintf(&b, ` WHERE (%s)`, q.Where)
	}
	if q.OrderBy != "" {
		fmt.Fprintf(&b, ` ORDER BY %s`, q.OrderBy)
	}
	fmt.Fprintf(&b, ` LIMIT %d`, q.Limit)
	return b.String(), nil
}

// columns are the quoted columns of the struct that dest is a slice of.
func (l *Locker) columns(dest any) (columns []string, err error) {
	t := reflect.TypeOf(dest)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Slice ||
		t.Elem().Elem().Kind() != reflect.Struct || reflect.ValueOf(dest).IsNil() {
		return nil, fmt.Errorf("%w: rows are picked into a pointer to a slice of structs, not into %T",
			lease.ErrConfig, dest)
	}
	fields := reflectx.NewMapperFunc("db", sqlx.NameMapper).TypeMap(t.Elem().Elem())
	for _, f := range fields.Index {
		if f.Embedded || strings.Contains(f.Path, ".") || fields.Paths[f.Path] != f {
			continue // a struct field is one column: a time, or a Scanner
		}
		quoted, err := l.d.Quote(f.Name)
		if err != nil || strings.Contains(f.Name, ".") {
			return nil, fmt.Errorf("%w: %T has a field for column %q: use a letter or _, then up to 62 letters, "+
				"digits or _", lease.ErrConfig, dest, f.Name)
		}
		columns = append(columns, quoted)
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("%w: %T has no field to put a column into", lease.ErrConfig, dest)
	}
	return columns, nil
}
