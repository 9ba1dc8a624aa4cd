package etcd_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/wire"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

const wireFile = "testdata/wire/records.txt"

var wireOwner = lease.Owner{0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// wireRecords are records in the states that a key passes through.
var wireRecords = []struct {
	name string
	etcd.Record
}{
	{"free in epoch 1", etcd.Record{Epoch: 1, State: 'o'}},
	{
		"held in epoch 1",
		etcd.Record{
			Epoch: 1, State: 'o', Owner: wireOwner, Granted: 1767225600000001, Note: "host 7, café",
		},
	},
	{
		"held without a note",
		etcd.Record{Epoch: 1, State: 'o', Owner: wireOwner, Granted: 1767225600000001},
	},
	{
		"sealed in epoch 255 by its holder",
		etcd.Record{Epoch: 255, State: 's', Owner: wireOwner, Granted: time.Time{}.UnixMicro()},
	},
	{
		"sealed in the last epoch by force",
		etcd.Record{Epoch: lease.Epoch(lease.MaxToken), State: 's'},
	},
}

func TestRecordsAreWrittenAsReleased(t *testing.T) {
	f := wire.New("What stands in etcd, as strings of Go.",
		"keys that are in the cluster now, and processes of the released versions beside this one",
		"what is stored for later")
	f.Section(
		"The names of a key's record and of what says that it is held, under the default prefix.",
	)
	for _, key := range []string{"a", "A", "invoice/42", "\x00\xff"} {
		record, holder := etcd.NamesOf("rowlock/", key)
		f.Add(fmt.Sprintf("name %q", key), "%s %s", record, holder)
	}
	f.Section(
		"A record: the epoch, its state (o open, s sealed), the owner, the microsecond of the grant, the note.",
	)
	for _, r := range wireRecords {
		f.Add("record "+r.name, "%q", r.Value())
	}
	f.Section("What says that a key is held: for how many milliseconds it outlives the lease.")
	f.Add("holder with 1.5 s to spare", "%q", etcd.HolderValue(1500*time.Millisecond))
	f.Section("What names the table that all records belong to, and its placement.")
	f.Add("claim", "%s %q", etcd.ClaimName("rowlock/"), "1 3f8e7a52-0d6b-4a13-9d5e-6f1f6c2b7a90 app_")
	f.Match(t, wireFile)
}

func TestWrittenRecordsAreRead(t *testing.T) {
	for i, v := range wire.Read(t, wireFile, "record ") {
		got, err := etcd.ParseRecord(unquote(t, v.Value))
		if want := wireRecords[i]; err != nil || v.Name != want.name || got != want.Record {
			t.Errorf("%s is read as %+v, %v, want %+v", v.Name, got, err, want.Record)
		}
	}
	for _, v := range wire.Read(t, wireFile, "name ") {
		for name := range strings.FieldsSeq(v.Value) {
			if got, ok := etcd.KeyOf("rowlock/", name); !ok || got != unquote(t, v.Name) {
				t.Errorf("%s is the name of %q, want %s", name, got, v.Name)
			}
		}
	}
}

func unquote(t *testing.T, s string) string {
	t.Helper()
	text, err := strconv.Unquote(s)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
