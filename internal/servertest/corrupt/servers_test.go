package corrupt

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// times are the columns that servers keep as times.
var times = []string{"acquired_at", "expires_at", "alive_until", "since", "joined_at", "made_at", "counted_at", "at"}

// farTimes are times that a server keeps and no program computes with.
var farTimes = map[string][]string{
	"pgx": {
		"NULL", "'infinity'", "'-infinity'", "'9999-01-01'", "'9998-12-31 23:59:59Z'", "'4713-01-01 BC'", "'294276-12-31'",
		"'1600-01-01'",
	},
	"mysql": {
		"NULL", "'9999-12-31 23:59:59.999999'", "'1000-01-01'", "'9999-01-01'", "'1970-01-01'", "'1600-01-01'",
		"'0001-01-01'", "'2262-04-12'",
	},
}

// FuzzServers is FuzzRows on each server that is there. Its columns have types, so that rows have
// numbers, bytes and times that rowlock cannot have written.
func FuzzServers(f *testing.F) {
	seed(f)
	var here []*table.Store
	var envs []*testdb.Env
	for _, k := range testdb.Servers {
		if os.Getenv("ROWLOCK_TEST_"+strings.ToUpper(k.Name)) == "" {
			continue // it is one test: it cannot skip a part
		}
		e := looseServer(f, k)
		opened, err := rowlock.OpenTable(e.Pool(f), e.Dialect, servertest.Config())
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = opened.Close() })
		here, envs = append(here, opened.(*table.Store)), append(envs, e)
	}
	if here == nil {
		f.Skip("SKIPPED, NOT FUZZED ON SERVERS: none is there")
	}
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		for i, e := range envs {
			freshServer(t, e, &draw{rows})
			r := &run{T: t, env: e, store: here[i], rows: here[i], shown: make(map[string]rowlock.Token)}
			d := &draw{calls}
			for range min(len(calls), 8) {
				r.call(d, r.all())
			}
			if t.Failed() {
				t.Log(e.Name)
			}
		}
	})
}

// looseServer makes the tables without constraints, in one session: MySQL's script has prepared
// statements.
func looseServer(f testing.TB, k testdb.Kind) *testdb.Env {
	e := k.Open(f)
	up, _, err := schema.SQL(e.Dialect)
	if err != nil {
		f.Fatal(err)
	}
	conn, err := e.DB.Conn(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	defer conn.Close()
	statements := []string{`DROP TABLE ` + e.Table("rowlock_hold")}
	for name := range columns {
		statements = append(statements, `DROP TABLE `+e.Table(name))
	}
	up = varchar.ReplaceAllString(constraint.ReplaceAllString(up, ""), "text")
	for _, s := range append(statements, strings.Split(strings.TrimSpace(up), ";\n")...) {
		if _, err := conn.ExecContext(f.Context(), strings.TrimSuffix(s, ";")); err != nil {
			f.Fatalf("%s: %s: %v", e.Name, s, err)
		}
	}
	return e
}

// freshServer empties the tables and writes the rows that d draws. A value that its column does not
// take leaves the row out.
func freshServer(t *testing.T, e *testdb.Env, d *draw) {
	for name := range columns {
		if name != "rowlock_floor" && name != "rowlock_meta" {
			e.Exec(t, `DELETE FROM `+e.Table(name))
		}
	}
	e.Exec(t, `UPDATE {rowlock_floor} SET floor = 0 WHERE floor <> 0 OR floor IS NULL`)
	for range 1 + d.next(4) {
		name := ofLocks[d.next(len(ofLocks))]
		into, marks, values := line(e, d, name)
		always := ""
		if e.Driver == "pgx" {
			always = ` OVERRIDING SYSTEM VALUE` // a ticket's number is PostgreSQL's own
		}
		query := `INSERT INTO ` + e.Table(name) + ` (` + strings.Join(into, ", ") + `)` + always +
			` VALUES (` + strings.Join(marks, ", ") + `)`
		if name == "rowlock_floor" { // its rows stay
			query = `UPDATE {rowlock_floor} SET floor = ? WHERE bucket = ?`
			values = []any{values[1], values[0]}
		}
		_, _ = e.DB.ExecContext(context.Background(), e.SQL(query), values...)
	}
}

// line draws a row: its columns, what stands for each value, and the values of the parameters.
func line(e *testdb.Env, d *draw, name string) (into, marks []string, values []any) {
	quote := `"`
	if e.Driver == "mysql" {
		quote = "`"
	}
	for _, column := range sorted(columns[name]) {
		into = append(into, quote+column+quote)
		v, chance := columns[name][column](d), d.next(8)
		switch timed := slices.Contains(times, column); {
		case timed && chance > 4:
			marks = append(marks, farTimes[e.Driver][d.next(8)])
			continue
		case timed:
			marks = append(marks, nearTime(e, d))
			continue
		case chance == 7:
			v = d.value()
		}
		marks, values = append(marks, "?"), append(values, v)
	}
	return into, marks, values
}

func nearTime(e *testdb.Env, d *draw) string {
	ms := []int64{60_000, -60_000, 1, 0, -4_000_000, 3_600_000}[d.next(6)]
	if e.Driver == "mysql" {
		return fmt.Sprintf("UTC_TIMESTAMP(6) + INTERVAL %d MICROSECOND", ms*1000)
	}
	return fmt.Sprintf("clock_timestamp() + interval '%d milliseconds'", ms)
}
