package etcd

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/lease"
)

// A record that cannot be read is one of the listing, so that the others can be. Its error does not
// repeat a megabyte.
func TestABadRecordIsListedAsBad(t *testing.T) {
	for _, value := range []string{"", "x", strings.Repeat("x", 1<<20), "ffffffffffffffffo "} {
		r := rowOf("k", &mvccpb.KeyValue{Key: []byte("r/6b"), Value: []byte(value), Version: 7}, nil)
		if r.absent() || !errors.Is(r.bad, lease.ErrCorrupt) || len(r.bad.Error()) > 1000 {
			t.Errorf("%.20q is read as %.200v", value, r)
		}
		shown := (&Cluster{}).show(t.Context(), r)
		if shown.Key != "k" || !shown.Held || !errors.Is(shown.Err, lease.ErrCorrupt) {
			t.Errorf("%.20q is shown as %.200v", value, shown)
		}
	}
}

// A note is shown no longer than rowlock writes it.
func TestALongNoteIsCut(t *testing.T) {
	value := record{epoch: 1, state: open, owner: lease.Owner{1}, note: strings.Repeat("x", 1<<20)}.value()
	r := rowOf("k", &mvccpb.KeyValue{Value: []byte(value), Version: 1}, nil)
	if n := len((&Cluster{}).show(t.Context(), r).Note); n != lease.MaxStoredNote {
		t.Errorf("a note of %d bytes, %v", n, r.bad)
	}
}

func TestAMissingContextIsNamed(t *testing.T) {
	var none context.Context
	if _, err := New(none, new(clientv3.Client)); !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), "ctx is nil") {
		t.Errorf("%v, want an error that names the nil ctx", err)
	}
}
