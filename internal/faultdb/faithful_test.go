package faultdb_test

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// question is a query whose answer must be the same with the wrapper and without.
type question struct {
	query string
	args  []any
}

// questions include what works only if the driver's own argument checks are asked.
func questions(b *bed) []question {
	all := []question{
		{"SELECT id, n, 'x' AS s, NULL AS z, 2.5 AS f FROM " + b.table + " WHERE id < " + b.arg + " ORDER BY id", []any{3}},
		{"SELECT id FROM " + b.table + " WHERE id = 99", nil},
	}
	switch b.name {
	case "postgres":
		return append(all, question{"SELECT unnest($1::int[]) AS i, '\\x00ff'::bytea AS b", []any{[]int{4, 5}}})
	case "sqlite":
		return append(all, question{"SELECT :who AS who, x'00ff' AS b", []any{sql.Named("who", "me")}})
	default:
		return append(all, question{"SELECT ? AS u, x'00ff' AS b", []any{uint64(math.MaxUint64)}})
	}
}

// answer renders everything database/sql tells about the rows of a question.
func (b *bed) answer(db *sql.DB, q question) string {
	b.Helper()
	rows, err := db.QueryContext(b.Context(), q.query, q.args...)
	if err != nil {
		b.Fatalf("%s: %v", q.query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	wantIs(b, err, nil)
	types, err := rows.ColumnTypes()
	wantIs(b, err, nil)
	out := fmt.Sprintf("%q\n", columns)
	for _, t := range types {
		out += describe(t)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		wantIs(b, rows.Scan(into...), nil)
		out += fmt.Sprintf("%#v\n", values)
	}
	wantIs(b, rows.Err(), nil)
	return out
}

func describe(t *sql.ColumnType) string {
	length, hasLength := t.Length()
	nullable, hasNullable := t.Nullable()
	precision, scale, hasPrecision := t.DecimalSize()
	return fmt.Sprintln(t.Name(), t.DatabaseTypeName(), t.ScanType(), length, hasLength, nullable, hasNullable,
		precision, scale, hasPrecision)
}

func TestAnswersAreTheDriversOwn(t *testing.T) {
	open := faultdb.NewGate()
	open.Release()
	injectors := map[string]faultdb.Injector{
		"without faults":  nil,
		"replayed":        faultdb.Always(faultdb.BlockAfter(open)),
		"behind a toggle": faultdb.NewToggle(faultdb.Always(faultdb.FailBeforeSend())),
	}
	onEach(t, func(t *testing.T, s server) {
		for name, inj := range injectors {
			t.Run(name, func(t *testing.T) {
				b := newBed(t, s)
				b.do("INSERT INTO " + b.table + " VALUES (2, 7)")
				db := b.open(inj)
				for _, q := range questions(b) {
					if got, want := b.answer(db, q), b.answer(b.plain, q); got != want {
						t.Errorf("%s\nwrapped: %s\nplain: %s", q.query, got, want)
					}
				}
			})
		}
	})
}

func TestResultsAndErrorsAreTheDriversOwn(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		b := newBed(t, s)
		db := b.open(nil)
		result, err := db.ExecContext(t.Context(), b.bumpBy(), 2)
		wantIs(t, err, nil)
		if n, err := result.RowsAffected(); n != 1 || err != nil {
			t.Errorf("%d rows affected, error %v", n, err)
		}
		for _, args := range [][]any{nil, {2}} { // the second makes MySQL's driver prepare
			query := "INSERT INTO " + b.table + " VALUES (1, 0)"
			if args != nil {
				query = "INSERT INTO " + b.table + " VALUES (1, " + b.arg + ")"
			}
			_, wrapped := db.ExecContext(t.Context(), query, args...)
			_, plain := b.plain.ExecContext(t.Context(), query, args...)
			if reflect.TypeOf(wrapped) != reflect.TypeOf(plain) || fmt.Sprint(wrapped) != fmt.Sprint(plain) {
				t.Errorf("got %T %v, the driver says %T %v", wrapped, wrapped, plain, plain)
			}
		}
	})
}

// SQLite commits with the step after the last row, which the reader of one row does not take: Close does.
func TestAFailureAfterTheLastRowIsReported(t *testing.T) {
	b := newBed(t, servers[0])
	b.do("CREATE TABLE child (id INT REFERENCES " + b.table + "(id) DEFERRABLE INITIALLY DEFERRED)")
	t.Cleanup(func() { b.do("DROP TABLE child") })
	open := faultdb.NewGate()
	open.Release()
	for _, inj := range []faultdb.Injector{nil, faultdb.Always(faultdb.BlockAfter(open))} {
		conn := b.conn(inj)
		_, err := conn.ExecContext(t.Context(), "PRAGMA foreign_keys = 1")
		wantIs(t, err, nil)
		var id int
		if err := conn.QueryRowContext(t.Context(), "INSERT INTO child VALUES (99) RETURNING id").Scan(&id); err == nil {
			t.Error("a commit that failed was reported as a success")
		}
	}
}

// Whether a connection has these two methods decides what the pool does with it.
func TestPoolMethodsAreTheDriversOwn(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		b := newBed(t, s)
		wantIs(t, b.conn(nil).Raw(func(wrapped any) error {
			inner := faultdb.Real(wrapped)
			if inner == wrapped {
				t.Fatal("the connection was not wrapped")
			}
			if got, want := resets(wrapped), resets(inner); got != want {
				t.Errorf("SessionResetter: %v, the driver has %v", got, want)
			}
			if got, want := validates(wrapped), validates(inner); got != want {
				t.Errorf("Validator: %v, the driver has %v", got, want)
			}
			if faultdb.Real(inner) != inner {
				t.Error("Real does not leave a driver's connection alone")
			}
			return nil
		}), nil)
	})
}

func resets(c any) bool    { _, ok := c.(driver.SessionResetter); return ok }
func validates(c any) bool { _, ok := c.(driver.Validator); return ok }

func TestRealReachesThePostgresConnection(t *testing.T) {
	b := newBed(t, servers[1])
	wantIs(t, b.conn(nil).Raw(func(c any) error {
		if _, ok := faultdb.Real(c).(*stdlib.Conn); !ok {
			t.Errorf("got a %T", faultdb.Real(c))
		}
		return nil
	}), nil)
}
