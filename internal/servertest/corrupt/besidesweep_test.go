package corrupt

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

var everything = lease.SweepOptions{Retention: time.Nanosecond, Batch: 1}

// past is an hour ago, as a value of SQL.
var past = map[string]string{
	"sqlite": "CAST(unixepoch('subsec') * 1000 AS INTEGER) - 3600000", "pgx": "clock_timestamp() - interval '1 hour'",
	"mysql": "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR",
}

// A sweep that would stop at what it cannot remove would leave all behind it for ever.
func TestASweepPassesOverRowsThatCannotBeRead(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		s := storeOn(t, e)
		ago := past[e.Driver]
		odd := [][]byte{[]byte("an odd waiter of another size"), []byte("0123456789abcdef")}
		if e.Driver == "mysql" { // its columns have 16 bytes
			odd = odd[1:]
		}
		for i, name := range odd {
			key := []byte{'a' + byte(i)}
			e.Exec(t, `INSERT INTO {rowlock_queue} ({key}, waiter, {rank}, ttl, alive_until) VALUES (?, ?, 1, 1, `+ago+`)`, key, name)
			e.Exec(t, `INSERT INTO {rowlock_member} ({key}, reader_group, owner, joined_at, expires_at) VALUES (?, ?, ?, `+ago+`, `+ago+`)`,
				key, append([]byte("rowlockT"), 0, 0, 0, 0, 0, 0, 0, 7), name)
		}
		for _, set := range []string{"NULL", ago} {
			e.Exec(t, `INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at, placement) VALUES (?, 7, `+ago+`, `+set+`, 0)`,
				[]byte("k"+set[:1]))
		}
		if _, err := s.Sweep(t.Context(), everything); err != nil {
			t.Error(err)
		}
		for table, want := range map[string]int{
			"rowlock_queue": len(odd) - 1, "rowlock_member": len(odd) - 1, "rowlock": 1,
		} {
			var left int
			if err := e.DB.QueryRow(`SELECT count(*) FROM ` + e.Table(table)).Scan(&left); err != nil || left != want {
				t.Errorf("%s has %d rows left, want %d: %v", table, left, want, err)
			}
		}
	})
}

// The floor of a bucket that cannot be read keeps that bucket's rows, because their tokens would be
// granted again, and no other's.
func TestAFloorThatCannotBeReadKeepsItsBucketAlone(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		s := storeOn(t, e)
		ago := past[e.Driver]
		for _, key := range []string{"a", "b", "c", "d"} {
			e.Exec(t, `INSERT INTO {rowlock} ({key}, token, acquired_at, expires_at, placement) VALUES (?, 7, `+ago+`, `+ago+`, 0)`, []byte(key))
		}
		e.Exec(t, `UPDATE {rowlock_floor} SET floor = NULL WHERE bucket = ?`, lease.Bucket("b"))
		if _, err := s.Sweep(t.Context(), everything); !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("%v, want ErrCorrupt", err)
		}
		found, err := s.Inspect(t.Context(), lease.Filter{})
		if err != nil || len(found) != 1 || found[0].Key != "b" {
			t.Errorf("%+v, %v are left", found, err)
		}
	})
}

// A ticket whose heartbeat does not end stands before all others for ever.
func TestAForcedReleaseRemovesTicketsWithoutAnEnd(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		s := storeOn(t, e)
		l := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
		if got, err := s.Acquire(t.Context(), []lease.AcquireRequest{l}); err != nil || !got[0].Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		far := map[string]string{"sqlite": "9223372036854775807", "pgx": "'infinity'", "mysql": "'9999-12-31'"}[e.Driver]
		e.Exec(t, `INSERT INTO {rowlock_queue} ({key}, waiter, {rank}, ttl, alive_until) VALUES (?, ?, 1, 1, `+far+`)`,
			[]byte("k"), []byte("0123456789abcdef"))
		next := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}
		if _, err := s.Join(t.Context(), []lease.Ticket{{AcquireRequest: next, Priority: 1}}); err != nil {
			t.Fatal(err)
		}
		req := lease.ForceRequest{Key: "k", By: "me", Reason: "why", ID: lease.NewOwner()}
		if _, err := s.ForceRelease(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Claim(t.Context(), []lease.AcquireRequest{next}); err != nil || !got[0].Granted {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// What a database refuses because of one row, it takes for the others.
func TestARowThatRefusesItsRenewalCostsNoOtherItsOwn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		b := &beside{T: t, env: e, store: storeOn(t, e)}
		b.setup("note = 'stubborn'")
		b.refusing("stubborn")
		b.stubborn = true
		b.renews()
	})
}

// refusing has a trigger refuse each change of a row with this note.
func (b *beside) refusing(note string) {
	on, function := b.env.Table("rowlock"), b.env.Dialect.Names().Prefix+"stubborn"
	if b.env.Driver == "pgx" {
		b.Cleanup(func() { b.env.Exec(b, `DROP FUNCTION `+function+` CASCADE`) })
	}
	for _, q := range map[string][]string{
		"sqlite": {`CREATE TRIGGER stubborn BEFORE UPDATE ON ` + on + ` WHEN OLD.note = '` + note +
			`' BEGIN SELECT RAISE(ABORT, 'stubborn'); END`},
		"mysql": {`CREATE TRIGGER ` + b.env.Table("rowlock_stubborn") + ` BEFORE UPDATE ON ` + on +
			` FOR EACH ROW BEGIN IF OLD.note = '` + note + `' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'stubborn'; END IF; END`},
		"pgx": {
			`CREATE FUNCTION ` + function + `() RETURNS trigger LANGUAGE plpgsql AS $$
				BEGIN IF OLD.note = '` + note + `' THEN RAISE 'stubborn'; END IF; RETURN NEW; END $$`,
			`CREATE TRIGGER stubborn BEFORE UPDATE ON ` + on + ` FOR EACH ROW EXECUTE FUNCTION ` + function + `()`,
		},
	}[b.env.Driver] {
		b.env.Exec(b, q)
	}
}
