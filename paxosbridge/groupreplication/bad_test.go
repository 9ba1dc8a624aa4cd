package groupreplication

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// line is a row of the group-records section, with nil for a value that cannot be read.
type line []any

func (l line) Scan(dest ...any) error {
	return sqlstore.ScanEach(dest, len(l), func(i int, d any) error {
		switch v := l[i].(type) {
		case string:
			*d.(*[]byte) = []byte(v)
		case int:
			*d.(*int) = v
		case int64:
			*d.(*int64) = v
		default:
			return errors.New("NULL")
		}
		return nil
	})
}

// A record that cannot be read is one of the list, so that the others can be.
func TestABadRecordIsListedAsBad(t *testing.T) {
	for _, bad := range []line{{"k", homeSealed, nil}, {"k", nil, int64(1)}, {"k", homeSealed, int64(-1)}} {
		r, err := scanRecord(bad)
		if err != nil || r.Key != "k" || !errors.Is(r.Err, lease.ErrCorrupt) || r.Epoch != 0 || r.Sealed {
			t.Errorf("%v is read as %+v, %v", bad, r, err)
		}
	}
	good, err := scanRecord(line{"k", homeSealed, lease.EpochStart(3)})
	if err != nil || good.Err != nil || good.Epoch != 3 || !good.Sealed {
		t.Errorf("a good one is read as %+v, %v", good, err)
	}
	if _, err := scanRecord(broken{}); err == nil {
		t.Error("a statement that fails is taken for a bad row")
	}
}

type broken struct{}

func (broken) Scan(...any) error { return fmt.Errorf("the connection is lost") }
