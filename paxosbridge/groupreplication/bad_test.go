package groupreplication

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// line is a row of the group-records section, with nil for a value that cannot be read.
func line(key string, placement, token any) (row conn.Columns) {
	row = append(row, conn.Cell{Kind: conn.CellBytes, Bytes: []byte(key)})
	for _, v := range []any{placement, token} {
		switch v := v.(type) {
		case int:
			row = append(row, conn.Cell{Kind: conn.CellInt, Int: int64(v)})
		case lease.Token:
			row = append(row, conn.Cell{Kind: conn.CellInt, Int: int64(v)})
		case int64:
			row = append(row, conn.Cell{Kind: conn.CellInt, Int: v})
		default:
			row = append(row, conn.Cell{})
		}
	}
	return row
}

// A record that cannot be read is one of the list, so that the others can be.
func TestABadRecordIsListedAsBad(t *testing.T) {
	for _, bad := range []conn.Columns{
		line("k", placementSealed, nil), line("k", nil, int64(1)), line("k", placementSealed, int64(-1)),
	} {
		r, err := scanRecord(bad)
		if err != nil || r.Key != "k" || !errors.Is(r.Err, lease.ErrCorrupt) || r.Epoch != 0 || r.Sealed {
			t.Errorf("%v is read as %+v, %v", bad, r, err)
		}
	}
	good, err := scanRecord(line("k", placementSealed, lease.EpochStart(3)))
	if err != nil || good.Err != nil || good.Epoch != 3 || !good.Sealed {
		t.Errorf("a good one is read as %+v, %v", good, err)
	}
	if _, err := scanRecord(nil); err == nil {
		t.Error("a statement that fails is taken for a bad row")
	}
}
