package corrupt

import (
	"context"
	"database/sql"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// columns are the tables, and for each column how a row that rowlock writes would have it.
var columns = map[string]map[string]func(*draw) any{
	"rowlock": {
		"key": key, "owner": owner, "note": text, "token": number, "acquired_at": moment,
		"expires_at": moment, "placement": zero,
	},
	"rowlock_floor": {"bucket": bucket, "floor": number},
	"rowlock_queue": {
		"ticket": number, "key": key, "waiter": owner, "rank": number, "note": text, "ttl": number,
		"alive_until": moment,
	},
	"rowlock_once": {
		"tenant": tenant, "key": key, "fingerprint": empty, "result": tenant, "made_at": moment,
		"expires_at": moment,
	},
	"rowlock_wait": {
		"caller": owner, "key": key, "token": number, "awaits": number, "process": zero, "note": text,
		"since": moment, "alive_until": moment,
	},
	"rowlock_member": {
		"key": key, "reader_group": owner, "owner": owner, "note": text, "joined_at": moment,
		"expires_at": moment,
	},
	"rowlock_limit": {"name": key, "slots": number, "peak": number, "generation": number},
	"rowlock_forced": {
		"key": key, "at": moment, "id": owner, "actor": text, "reason": text, "asked": number,
		"owner": owner, "token": number, "note": text, "raised": number,
	},
	"rowlock_trace": {
		"at": moment, "id": number, "key": key, "event": event, "token": number, "owner": owner,
		"note": text, "number": number, "detail": text,
	},
	"rowlock_latch": {
		"kind": small, "key": key, "id": owner, "generation": number, "parties": number, "state": small,
		"ended": small, "made_at": moment, "expires_at": moment,
	},
	"rowlock_party": {
		"id": owner, "phase": small, "party": party, "counted_at": moment, "alive_until": moment,
	},
	"rowlock_meta": {"name": name, "value": version, "start": none, "since": none},
}

// ofLocks are the tables of a target in the order in which a byte chooses one: rowlock most often.
var ofLocks = []string{
	"rowlock", "rowlock", "rowlock", "rowlock_floor", "rowlock_queue", "rowlock_once", "rowlock_wait",
	"rowlock_member", "rowlock_limit", "rowlock_forced", "rowlock_trace", "rowlock_meta",
}

func key(d *draw) any    { return []byte(d.key()) }
func moment(d *draw) any { return d.moment() }
func number(d *draw) any { return []int64{7, 1, 100, 2}[d.next(4)] }
func zero(*draw) any     { return int64(0) }
func small(d *draw) any  { return int64(d.next(4)) }
func party(d *draw) any  { return []byte(d.party()) }
func name(d *draw) any   { return []string{"schema_version", "instance"}[d.next(2)] }
func empty(*draw) any    { return []byte{} }
func none(*draw) any     { return nil }
func text(d *draw) any   { return []string{"web-1\twhy", "", "x"}[d.next(3)] }
func tenant(d *draw) any { return []byte(text(d).(string)) }
func bucket(d *draw) any { return int64(lease.Bucket(d.key())) }
func event(d *draw) any  { return []string{"granted", "dropped", "lost", "new"}[d.next(4)] }

func version(d *draw) any {
	return []string{"3", "1", "4", "", "x", "-3", "99999999999999999999", "03", " 3", "3\n"}[d.next(10)]
}

func owner(d *draw) any {
	o := d.owner()
	if o.IsZero() {
		return nil
	}
	return o[:]
}

var constraint = regexp.MustCompile(`(?i) NOT NULL| STRICT,| STRICT\b| CHECK \((?:[^()]|\([^()]*\))*\)`)

var varchar = regexp.MustCompile(`varchar\(\d+\)`)

// loose makes the tables of a new file without constraints, as those of another migration tool may
// be, so that any value can be written.
func loose(f testing.TB) *testdb.Env {
	e := testdb.Kinds[0].Open(f)
	up, down, err := schema.SQL(e.Dialect)
	if err != nil {
		f.Fatal(err)
	}
	e.Exec(f, strings.ReplaceAll(down, "ALTER", "-- ALTER"))
	e.Exec(f, `DROP TABLE {rowlock_floor}`)
	e.Exec(f, `DROP TABLE {rowlock_meta}`)
	e.Exec(f, constraint.ReplaceAllString(up, ""))
	return e
}

// fresh empties the tables and writes the rows that d draws into some of names.
func fresh(t *testing.T, e *testdb.Env, d *draw, names []string) {
	tx, err := e.DB.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}()
	for table := range columns {
		exec(t, tx, `DELETE FROM `+e.Table(table))
	}
	// Otherwise the last ticket of one input is that of all after it.
	exec(t, tx, `DELETE FROM sqlite_sequence`)
	exec(t, tx, e.SQL(`WITH RECURSIVE b (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM b WHERE n < 255)
		INSERT INTO {rowlock_floor} (bucket, floor) SELECT n, 0 FROM b`))
	exec(t, tx, e.SQL(`INSERT INTO {rowlock_meta} (name, value) VALUES ('schema_version', ?), ('instance', ?)`),
		strconv.Itoa(sqlstore.SchemaVersion), "an instance")
	for range 1 + d.next(4) {
		write(t, tx, e, d, names[d.next(len(names))])
	}
}

// write writes one row. Each column is as rowlock has it, or anything.
func write(t *testing.T, tx *sql.Tx, e *testdb.Env, d *draw, table string) {
	var into, marks []string
	var values []any
	for _, column := range sorted(columns[table]) {
		v := columns[table][column](d)
		if d.next(8) == 7 {
			v = d.value()
		}
		into, marks, values = append(into, column), append(marks, "?"), append(values, v)
	}
	// Such a table refuses NULL in its primary key, and a ticket of its own after the last there
	// is.
	exec(t, tx, `INSERT OR REPLACE INTO `+e.Table(table)+` (`+strings.Join(into, ", ")+
		`) SELECT `+strings.Join(marks, ", "), values...)
}

func exec(t *testing.T, tx *sql.Tx, query string, args ...any) {
	if _, err := tx.Exec(query, args...); err != nil && !strings.Contains(err.Error(), "constraint") &&
		!strings.Contains(err.Error(), "mismatch") && !strings.Contains(err.Error(), "full") {
		t.Fatalf("%s: %v", query, err)
	}
}
