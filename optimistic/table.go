package optimistic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Ext runs the statements on your table: *sql.DB, *sql.Tx, *sql.Conn and their counterparts in sqlx
// have it.
type Ext interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Table is one of your own tables, whose rows are changed only if they are still as they were read.
// It holds no connection and is safe for concurrent use.
type Table[T any] struct {
	d       *sqlstore.Dialect
	name    string
	quoted  string
	located *located
	columns []column // in the order of the struct
	keys    []int    // which of columns are the key
	version int      // which of columns is the version
	limit   int64    // the last version there can be
}

// column is one field of T.
type column struct {
	name, quoted string
	index        []int
}

// NewTable describes a table by the struct that a row is read into. As with sqlx, a field is the
// column that its db tag names, or else its name in lower case; "-" leaves it out. The key is the
// fields tagged `db:"name,key"`, or else the column id. It must be unique, as a primary key is. The
// version is the field tagged `db:"name,version"`, or else the column version: an integer, NOT NULL
// in the table, which every writer raises. An error is lease.ErrConfig.
//
// name is that of the table, or "schema.name". Without a schema it is, in a transaction or on a
// connection of yours, the table that its session finds. Through a pool it is the table that a new
// connection finds, whatever an application has sent on a connection before it was returned (SET
// search_path, USE); neither does a statement count that a hook sends on each new connection. On
// SQLite it is that of the DSN's file; if that has none, one in a file that the connection has
// attached.
func NewTable[T any](d dialect.Dialect, name string) (*Table[T], error) {
	if isnil.Value(d) {
		return nil, fmt.Errorf("%w: optimistic.NewTable needs a dialect", lease.ErrConfig)
	}
	of := sqlstore.Of(d)
	quoted, err := of.Quote(name)
	if err != nil {
		return nil, err
	}
	t := &Table[T]{d: of, name: name, quoted: quoted, located: new(located), version: -1}
	typ := reflect.TypeFor[T]()
	if typ.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: optimistic.NewTable of %s: use a struct with a field for each "+
			"column", lease.ErrConfig, typ)
	}
	if err := t.describe(typ); err != nil {
		return nil, err
	}
	return t, t.limitVersion(typ)
}

// describe finds the columns, and the key and the version among them.
func (t *Table[T]) describe(typ reflect.Type) error {
	fields := reflectx.NewMapperFunc("db", sqlx.NameMapper).TypeMap(typ)
	var keys, versions []int
	for _, f := range fields.Index {
		if err := unusable(fields, f); err != nil {
			return fmt.Errorf("%w: %s.%s: %w", lease.ErrConfig, typ, f.Field.Name, err)
		}
		if f.Embedded || f.Path != f.Name || fields.Paths[f.Path] != f {
			continue // a struct field is one column: a time, or a Scanner
		}
		quoted, err := t.d.Quote(f.Name)
		if err != nil || strings.Contains(f.Name, ".") {
			return fmt.Errorf("%w: %s.%s: column %q: use a letter or _, then up to 62 letters, digits "+
				"or _", lease.ErrConfig, typ, f.Field.Name, f.Name)
		}
		n := len(t.columns)
		t.columns = append(t.columns, column{f.Name, quoted, f.Index})
		if _, ok := f.Options["key"]; ok {
			keys = append(keys, n)
		}
		if _, ok := f.Options["version"]; ok {
			versions = append(versions, n)
		}
	}
	return t.choose(typ, keys, versions)
}

// unusable returns why a column that was meant to be written would be left out.
func unusable(fields *reflectx.StructMap, f *reflectx.FieldInfo) error {
	twin := fields.Paths[f.Path]
	switch {
	case f.Embedded && f.Path != "" && strings.Contains(string(f.Field.Tag), "db:"):
		return fmt.Errorf("it is embedded, and the tag %q would make it one column: leave out the tag, "+
			"or give it a name", f.Path)
	case f.Embedded && f.Field.Type.Kind() == reflect.Pointer && !f.Field.IsExported():
		return errors.New("a nil pointer that is embedded and not exported cannot be filled: embed the struct itself")
	case f.Path == f.Name && !f.Embedded && twin != f && !twin.Embedded && len(twin.Index) == len(f.Index):
		return fmt.Errorf("the column %q is that of %s too", f.Name, twin.Field.Name)
	}
	return nil
}

// choose takes the columns with the default names if none is tagged.
func (t *Table[T]) choose(typ reflect.Type, keys, versions []int) error {
	named := func(tagged []int, name string) []int {
		at := slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
		if len(tagged) > 0 || at < 0 {
			return tagged
		}
		return []int{at}
	}
	t.keys = named(keys, "id")
	versions = named(versions, "version")
	switch {
	case len(t.keys) == 0:
		return fmt.Errorf("%w: %s has no key: tag the field of the primary key `db:\"name,key\"`, or "+
			"have a column id", lease.ErrConfig, typ)
	case len(versions) != 1:
		return fmt.Errorf("%w: %s has %d versions: tag one integer field `db:\"name,version\"`, or have "+
			"a column version", lease.ErrConfig, typ, len(versions))
	case slices.Contains(t.keys, versions[0]):
		return fmt.Errorf("%w: %s: the version %q cannot be part of the key", lease.ErrConfig, typ,
			t.columns[versions[0]].name)
	}
	t.version = versions[0]
	return nil
}

// limitVersion finds the last version that the field and a database's largest integer can have.
func (t *Table[T]) limitVersion(typ reflect.Type) error {
	field := typ.FieldByIndex(t.columns[t.version].index).Type
	bits := field.Size() * 8
	switch field.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		t.limit = math.MaxInt64 >> (64 - bits)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		t.limit = int64(min(uint64(math.MaxUint64)>>(64-bits), math.MaxInt64))
	default:
		return fmt.Errorf("%w: %s: the version %q is a %s; make it an integer", lease.ErrConfig, typ,
			t.columns[t.version].name, field)
	}
	return nil
}

// field is one column of a row, to be written to. Nil pointers on the way, and the field itself,
// are made.
func (c column) field(row reflect.Value) reflect.Value { return reflectx.FieldByIndexes(row, c.index) }

// value is a column of a row as a parameter. A nil pointer is NULL, and so is a field of a missing
// embedded struct.
func (c column) value(row reflect.Value) any {
	field, err := row.FieldByIndexErr(c.index)
	if err != nil {
		return nil
	}
	return field.Interface()
}

// versionOf reads the version of a row; one that no database can have is -1.
func (t *Table[T]) versionOf(row reflect.Value) int64 {
	v := t.columns[t.version].field(row)
	if v.CanInt() {
		return v.Int()
	}
	if u := v.Uint(); u <= math.MaxInt64 {
		return int64(u)
	}
	return -1
}

func (t *Table[T]) setVersion(row reflect.Value, to int64) {
	v := t.columns[t.version].field(row)
	if v.CanInt() {
		v.SetInt(to)
		return
	}
	v.SetUint(uint64(to))
}

func (t *Table[T]) keyOf(row reflect.Value) []any {
	key := make([]any, len(t.keys))
	for i, k := range t.keys {
		key[i] = t.columns[k].value(row)
	}
	return key
}

// whereKey is the condition for one row, with a ? for each key column.
func (t *Table[T]) whereKey() string {
	parts := make([]string, len(t.keys))
	for i, k := range t.keys {
		parts[i] = t.columns[k].quoted + " = ?"
	}
	return strings.Join(parts, " AND ")
}

// bind writes parameters in the database's form.
func (t *Table[T]) bind(query string) string {
	if t.d.Dollars {
		return sqlx.Rebind(sqlx.DOLLAR, query)
	}
	return query
}
