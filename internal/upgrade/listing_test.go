package upgrade_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/internal/wire"
)

// expression is SQL for a time in µs, and for whether it has passed.
func expression(e *testdb.Env, column string) (micros, passed string) {
	switch e.Driver {
	case "pgx":
		micros = "CAST(extract(epoch FROM " + column + ") * 1000000 AS bigint)"
	case "mysql":
		micros = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " + column + ")"
	default:
		micros = column + " * 1000"
	}
	return micros, "CASE WHEN " + column + " > {now} THEN 'no' ELSE 'yes' END"
}

// listing has every row of the tables, without what differs from run to run.
func listing(t *testing.T, e *testdb.Env) *wire.File {
	t.Helper()
	f := wire.New("Every row of the tables on "+e.Name+" after internal/upgrade has filled them.",
		"every table that exists, and processes of the released versions beside this one",
		"meaning of a column")
	_, expired := expression(e, "expires_at")

	f.Section("rowlock: owner, note, token, placement, whether it has expired")
	rows(t, e, `SELECT {key}, owner, note, token, placement, `+expired+` FROM {rowlock} ORDER BY {key}`,
		func(scan func(...any) error) error {
			var key, owner, note []byte
			var token, placement int64
			var expired string
			err := scan(&key, &owner, &note, &token, &placement, &expired)
			f.Add(fmt.Sprintf("lease %q", key), "%x %q %d %d %s", owner, note, token, placement, expired)
			return err
		})
	f.Section("rowlock_floor: those above 0")
	rows(t, e, `SELECT bucket, floor FROM {rowlock_floor} WHERE floor > 0 ORDER BY bucket`,
		func(scan func(...any) error) error {
			var bucket, floor int64
			err := scan(&bucket, &floor)
			f.Add(fmt.Sprintf("floor of bucket %d", bucket), "%d", floor)
			return err
		})
	queue(t, e, f)
	f.Section("rowlock_once: tenant, fingerprint, result, whether it has expired")
	rows(t, e, `SELECT tenant, {key}, fingerprint, result, `+expired+` FROM {rowlock_once} ORDER BY {key}, tenant`,
		func(scan func(...any) error) error {
			var tenant, key, fingerprint, result []byte
			var expired string
			err := scan(&tenant, &key, &fingerprint, &result, &expired)
			f.Add(fmt.Sprintf("result of %q", key), "%q %x %q %s", tenant, fingerprint, result, expired)
			return err
		})
	f.Section("rowlock_hold, rowlock_meta")
	rows(t, e, `SELECT {key} FROM {rowlock_hold} ORDER BY {key}`, func(scan func(...any) error) error {
		var key []byte
		err := scan(&key)
		f.Add("hold", "%q", key)
		return err
	})
	rows(t, e, `SELECT name, value FROM {rowlock_meta} WHERE start IS NULL ORDER BY name`, func(scan func(...any) error) error {
		var name, value string
		err := scan(&name, &value)
		if name == "instance" && len(value) == 36 {
			value = strings.Repeat("x", 36)
		}
		f.Add("meta "+name, "%s", value)
		return err
	})
	family(t, e, f)
	return f
}

// family lists what more than locks write. The id of a latch is random.
func family(t *testing.T, e *testdb.Env, f *wire.File) {
	t.Helper()
	_, expired := expression(e, "expires_at")
	f.Section("rowlock_member: note, whether it has expired")
	rows(t, e, `SELECT {key}, reader_group, owner, note, `+expired+` FROM {rowlock_member} ORDER BY {key}, reader_group, owner`,
		func(scan func(...any) error) error {
			var key, group, owner, note []byte
			var expired string
			err := scan(&key, &group, &owner, &note, &expired)
			f.Add(fmt.Sprintf("member %x of %x, %q", owner, group, key), "%q %s", note, expired)
			return err
		})
	f.Section("rowlock_latch: generation, parties, state, ended, how many have counted, whether it has expired")
	rows(t, e, `SELECT kind, {key}, generation, parties, state, ended, (SELECT COUNT(*) FROM {rowlock_party}
		AS p WHERE p.id = l.id AND p.phase = 0), `+expired+` FROM {rowlock_latch} AS l ORDER BY kind, {key}`,
		func(scan func(...any) error) error {
			var key []byte
			var kind, generation, parties, state, ended, counted int64
			var expired string
			err := scan(&kind, &key, &generation, &parties, &state, &ended, &counted, &expired)
			f.Add(fmt.Sprintf("latch %q of kind %d", key, kind), "%d %d %d %d %d %s", generation, parties, state, ended,
				counted, expired)
			return err
		})
	f.Section("rowlock_limit: slots, peak, generation")
	rows(t, e, `SELECT name, slots, peak, generation FROM {rowlock_limit} ORDER BY name`,
		func(scan func(...any) error) error {
			var name []byte
			var slots, peak, generation int64
			err := scan(&name, &slots, &peak, &generation)
			f.Add(fmt.Sprintf("limit %q", name), "%d %d %d", slots, peak, generation)
			return err
		})
	f.Section("rowlock_forced: operator, reason, token asked for, owner, token, note, raised token")
	rows(t, e, `SELECT {key}, id, actor, reason, asked, owner, token, note, raised FROM {rowlock_forced} ORDER BY id`,
		func(scan func(...any) error) error {
			var key, id, actor, reason, owner, note []byte
			var asked, token, raised int64
			err := scan(&key, &id, &actor, &reason, &asked, &owner, &token, &note, &raised)
			actor, _, _ = bytes.Cut(actor, []byte("\t")) // the session's user is the server's
			f.Add(fmt.Sprintf("request %x for %q", id, key), "%q %q %d %x %d %q %d", actor, reason, asked, owner,
				token, note, raised)
			return err
		})
	f.Section("rowlock_meta: incarnations, and the start of their newest era")
	rows(t, e, `SELECT COUNT(*), MAX(start) FROM {rowlock_meta} WHERE name LIKE 'era/%'`, func(scan func(...any) error) error {
		var incarnations, start int64
		err := scan(&incarnations, &start)
		f.Add("eras", "%d %d", incarnations, start)
		return err
	})
	f.Section("rowlock_trace: key, event, token, owner, note, number, detail")
	rows(t, e, `SELECT id, {key}, event, token, owner, note, number, detail FROM {rowlock_trace} ORDER BY id`,
		func(scan func(...any) error) error {
			var key, event, owner, note, detail []byte
			var id, token, number int64
			err := scan(&id, &key, &event, &token, &owner, &note, &number, &detail)
			f.Add(fmt.Sprintf("event %d", id), "%q %q %d %x %q %d %q", key, event, token, owner, note, number,
				detail)
			return err
		})
}

// queue lists tickets and registered processes. Of a ticket it shows its head start, which is what
// its rank is made of.
func queue(t *testing.T, e *testdb.Env, f *wire.File) {
	t.Helper()
	f.Section("rowlock_queue: note, ttl in µs, head start of a ticket, whether it has expired")
	until, expired := expression(e, "alive_until")
	rows(t, e, `SELECT {key}, waiter, note, ttl, `+until+` - ttl - {rank}, `+expired+`
		FROM {rowlock_queue} ORDER BY {key}, waiter`, func(scan func(...any) error) error {
		var key, waiter, note []byte
		var ttl int64
		var start *int64
		var expired string
		if err := scan(&key, &waiter, &note, &ttl, &start, &expired); err != nil {
			return err
		}
		kind, head := "process", "none"
		if start != nil {
			kind, head = "ticket", (time.Duration(*start) * time.Microsecond).Round(time.Second).String()
		}
		f.Add(fmt.Sprintf("%s %x for %q", kind, waiter, key), "%q %d %s %s", note, ttl, head, expired)
		return nil
	})
}

// rows runs a query and calls f on each row.
func rows(t *testing.T, e *testdb.Env, query string, f func(scan func(...any) error) error) {
	t.Helper()
	found, err := e.DB.QueryContext(t.Context(), e.SQL(query))
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		if err := f(found.Scan); err != nil {
			t.Fatal(err)
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
}
