package groupreplication_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/wire"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

const wireFile = "testdata/wire/rows.txt"

// A process of another version works on the same rows, and takes each for the record it was written
// as.
func TestRecordsAreRowsAsReleased(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	held := lease.AcquireRequest{
		Key: "held", Owner: lease.Owner{0x00, 0xff, 1}, TTL: ttl, Note: "host 7, café", Epoch: 3,
	}
	for _, key := range []string{"held", "free", "sealed"} {
		r.must(c.Open(t.Context(), key, 3))
	}
	r.must(c.Supersede(t.Context(), "superseded", 255))
	r.hold(c, held)
	r.release(
		c, r.hold(c, lease.AcquireRequest{Key: "free", Owner: lease.Owner{1}, TTL: ttl, Epoch: 3}),
	)
	sealed := r.hold(
		c, lease.AcquireRequest{Key: "sealed", Owner: lease.Owner{2}, TTL: ttl, Epoch: 3},
	)
	if ok, err := c.Seal(t.Context(), sealed); err != nil || !ok {
		t.Fatal(ok, err)
	}
	f := wire.New("The rows of records in a group: placement, token, owner, note.",
		"keys that are in the group now, and processes of the released versions beside this one",
		"what is stored for later")
	rows, err := r.primary().QueryContext(t.Context(), r.sql(
		"SELECT `key`, placement, token, owner, note FROM {rowlock} WHERE LEFT(`key`, 1) <> 0x00 ORDER BY `key`",
	))
	r.must(err)
	defer rows.Close()
	for rows.Next() {
		var key, owner, note []byte
		var placement int
		var token lease.Token
		r.must(rows.Scan(&key, &placement, &token, &owner, &note))
		f.Add(string(key), "%d %d %x %q", placement, token, owner, note)
	}
	r.must(rows.Err())
	f.Match(t, wireFile)
}

func TestRowsAreReadAsTheirRecords(t *testing.T) {
	r := newRig(t)
	c := r.cluster()
	r.empty()
	for _, v := range wire.Read(t, wireFile, "") {
		var placement int
		var token lease.Token
		var owner []byte
		var note string
		if n, _ := fmt.Sscanf(v.Value, "%d %d %x %q", &placement, &token, &owner, &note); n < 4 {
			owner = nil // a free row has none
			if _, err := fmt.Sscanf(v.Value, "%d %d  %q", &placement, &token, &note); err != nil {
				t.Fatal(v, err)
			}
		}
		r.exec(
			"INSERT INTO {rowlock} (`key`, placement, token, owner, note, acquired_at, expires_at) VALUES (?, ?, ?, ?, ?, "+
				"UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)",
			[]byte(v.Name), placement, token, owner, note,
		)
	}
	got, err := c.Records(t.Context(), "", 100)
	r.must(err)
	want := []paxosbridge.Record{
		{Key: "free", Epoch: 3},
		{Key: "held", Epoch: 3},
		{Key: "sealed", Epoch: 3, Sealed: true},
		{Key: "superseded", Epoch: 255, Sealed: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are read as %+v, want %+v", got, want)
	}
	answers, err := c.Acquire(
		t.Context(),
		[]lease.AcquireRequest{{Key: "held", Owner: lease.Owner{9}, TTL: ttl, Epoch: 3}},
	)
	if err != nil || answers[0].Granted || answers[0].Holder.Note != "host 7, café" {
		t.Errorf("the held key is answered %+v, %v", answers, err)
	}
}
