package groupreplication_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
)

// inputs turns the bytes of a fuzz input into choices; at its end it draws zeros.
type inputs struct{ b []byte }

func (d *inputs) next(n int) int {
	if len(d.b) == 0 {
		return 0
	}
	c := int(d.b[0])
	d.b = d.b[1:]
	return c % n
}

func draw[A any](d *inputs, of ...A) A { return of[d.next(len(of))] }

// typed are the errors that a record may be answered with.
var typed = []error{
	lease.ErrCorrupt, paxosbridge.ErrRecord, lease.ErrMoved, lease.ErrTokenExhausted, lease.ErrConfig, lease.ErrBusy,
}

// FuzzRecords writes records by hand, and makes calls. A record is refused with an error that has a
// name, or counts as held. No grant has a token that is not above all that its row has shown, and
// none is of another epoch than its request names.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{}, []byte{})
	random := rand.New(rand.NewPCG(1, 2))
	for range 16 {
		rows, calls := make([]byte, 20), make([]byte, 40)
		for _, b := range [][]byte{rows, calls} {
			for i := range b {
				b[i] = byte(random.Uint32())
			}
		}
		f.Add(rows, calls)
	}
	r := newRig(f)
	c, db := r.cluster(), r.primary()
	unconstrained(r)
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		record(t, db, r, &inputs{rows})
		d := &inputs{calls}
		for range min(len(calls), 6) {
			use(ctx, t, c, db, r, d)
		}
	})
}

// unconstrained has the server keep what the tables' constraints forbid.
func unconstrained(r *rig) {
	rows, err := r.primary().Query(`SELECT table_name, constraint_name FROM information_schema.table_constraints
		WHERE constraint_type = 'CHECK' AND table_schema = DATABASE() AND table_name = ?`, r.sql("{rowlock}"))
	r.must(err)
	defer rows.Close()
	for rows.Next() {
		var table, name string
		r.must(rows.Scan(&table, &name))
		r.exec("ALTER TABLE " + table + " ALTER CHECK `" + name + "` NOT ENFORCED")
	}
	r.must(rows.Err())
}

var tokens = []lease.Token{
	1, 7, 1 << lease.EpochShift, 1<<lease.EpochShift + 3, 2<<lease.EpochShift - 1, 3 << lease.EpochShift, 0, -1, -2,
	math.MinInt64, -1 << lease.EpochShift, lease.MaxToken - 1, lease.MaxToken, math.MaxInt64,
}

// record replaces all records by those that d draws.
func record(t *testing.T, db *sql.DB, r *rig, d *inputs) {
	if _, err := db.Exec(r.sql(`DELETE FROM {rowlock}`)); err != nil {
		t.Fatal(err)
	}
	for range 1 + d.next(3) {
		owner := draw(d, nil, []byte("0123456789abcdef"), []byte("another's 16 byt"), make([]byte, 16), []byte("short"))
		at := draw(d, "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR", "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR",
			"'9999-12-31'", "'1000-01-01'")
		// A key may be drawn twice; the first stays.
		_, err := db.Exec(r.sql("INSERT IGNORE INTO {rowlock} (`key`, owner, note, token, acquired_at, expires_at, placement) "+
			"VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6), "+at+", ?)"),
			draw(d, "k", "k2", ""), owner, draw(d, "", "web-1\twhy", "\xff\x00"), draw(d, tokens...),
			draw(d, 0, -2, 0, -1, 1, 2, math.MinInt16))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// use makes one call.
func use(ctx context.Context, t *testing.T, c *groupreplication.Cluster, db *sql.DB, r *rig, d *inputs) {
	key, epoch := draw(d, "k", "k2"), draw[int64](d, 0, 1, 2, 3)
	l := lease.Lease{Key: key, Owner: lease.Owner([]byte("0123456789abcdef")), Token: draw(d, tokens...)}
	q := lease.AcquireRequest{Key: key, Owner: draw(d, lease.NewOwner(), l.Owner), TTL: ttl, Epoch: epoch}
	var shown sql.NullInt64
	if err := db.QueryRow(r.sql("SELECT MAX(token) FROM {rowlock} WHERE `key` = ?"), key).Scan(&shown); err != nil {
		t.Fatal(err)
	}
	var err error
	var got []lease.Acquired
	switch n := d.next(8); n {
	case 0, 1:
		got, err = c.Acquire(ctx, []lease.AcquireRequest{q})
	case 2:
		got, err = c.HandOver(ctx, []lease.HandOver{{From: l, To: q}})
	case 3:
		err = c.Open(ctx, key, epoch)
	case 4:
		err = c.Supersede(ctx, key, epoch)
	case 5:
		_, err = c.Seal(ctx, l)
	case 6:
		_, err = c.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: ttl}})
		if _, also := c.Release(ctx, []lease.Lease{l}); err == nil {
			err = also
		}
	case 7:
		var all []paxosbridge.Record
		all, err = c.Records(ctx, "", 10)
		if slices.ContainsFunc(all, func(r paxosbridge.Record) bool { return r.Epoch < 0 }) {
			t.Errorf("records of %+v", all)
		}
		if _, also := c.Inspect(ctx, lease.Filter{}); err == nil {
			err = also
		}
	}
	for _, a := range got {
		again := q.Owner == l.Owner && int64(a.Token) == shown.Int64
		switch {
		case !a.Granted && err == nil:
			err = a.Err
		case !a.Granted:
		case a.Token <= 0 || a.Token >= lease.MaxToken || int64(a.Token) <= shown.Int64 && !again,
			epoch != 0 && lease.Epoch(a.Token) != epoch:
			t.Errorf("%q was granted with %d in epoch %d, after %d", key, a.Token, epoch, shown.Int64)
		}
	}
	if err != nil && !slices.ContainsFunc(typed, func(e error) bool { return errors.Is(err, e) }) {
		t.Error(err)
	}
}
