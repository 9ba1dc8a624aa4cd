package paxosbridge_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// named is a table that has an instance, as those of databases have.
type named struct {
	table
	instance string
}

func (n named) Instance() string { return n.instance }

func TestAClusterOfAnotherTableIsRefusedBeforeItsRecordsAreRead(t *testing.T) {
	cluster := memcluster.New()
	if err := cluster.Open(t.Context(), "hot", 1); err != nil {
		t.Fatal(err)
	}
	mine := named{table{memstore.New()}, "1f app_"}
	other := named{table{memstore.New()}, "2e app_"}
	for _, c := range []struct {
		table     paxosbridge.Table
		placement int
		want      error
	}{
		{mine, 1, nil}, {other, 1, lease.ErrConfig}, {mine, 2, lease.ErrConfig}, {mine, 1, nil},
	} {
		b, err := paxosbridge.New(t.Context(), c.table, cluster, &paxosbridge.Config{Placement: c.placement, Every: -1})
		(&rig{TB: t}).wantIs(err, c.want)
		if err == nil {
			_ = b.Close()
		}
	}
	// The audit of a bridge would have made a row of the record.
	if rows, err := other.Inspect(t.Context(), lease.Filter{}); err != nil || len(rows) > 0 {
		t.Errorf("the refused table has %+v, %v", rows, err)
	}
}
