package etcd_test

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// FuzzRecord: a value in etcd is refused, or is exactly what a process writes of the record read
// from it. Otherwise the guards, which compare values byte by byte, would not find what was read.
func FuzzRecord(f *testing.F) {
	for _, r := range wireRecords {
		f.Add(r.Value(), "k")
	}
	for _, s := range []string{"", "-000000000000001o ", "+000000000000001o ", "000000000000000Ao ", "7fffffffffffffffo ", "0000000000000001o x"} {
		f.Add(s, "\x00\xff")
	}
	f.Fuzz(func(t *testing.T, value, key string) {
		r, err := etcd.ParseRecord(value)
		switch {
		case err != nil && !errors.Is(err, lease.ErrCorrupt):
			t.Errorf("%q: %v", value, err)
		case err == nil && r.Value() != value:
			t.Errorf("%q is read as %q", value, r.Value())
		case err == nil && (r.Epoch < 0 || lease.EpochStart(r.Epoch) < 0):
			t.Errorf("%q is of epoch %d", value, r.Epoch)
		}
		record, holder := etcd.NamesOf("rowlock/", key)
		for _, name := range []string{record, holder} {
			if got, ok := etcd.KeyOf("rowlock/", name); !ok || got != key {
				t.Errorf("%q is named %q and read as %q", key, name, got)
			}
		}
		_, _ = etcd.KeyOf("rowlock/", value)
	})
}
