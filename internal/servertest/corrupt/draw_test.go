package corrupt

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// seed adds inputs that are as long as what is drawn: a fuzzer that is not guided hardly lengthens
// what it begins with, and after its end every column is as rowlock writes it.
func seed(f *testing.F) {
	f.Add([]byte{}, []byte{})
	r := rand.New(rand.NewPCG(1, 2))
	for range 32 {
		rows, calls := make([]byte, 20+r.IntN(100)), make([]byte, 2+r.IntN(40))
		for _, b := range [][]byte{rows, calls} {
			for i := range b {
				b[i] = byte(r.Uint32())
			}
		}
		f.Add(rows, calls)
	}
}

// draw turns the bytes of a fuzz input into choices. At its end it draws zeros, so that every input
// is a whole one.
type draw struct{ b []byte }

func (d *draw) next(n int) int {
	if len(d.b) == 0 {
		return 0
	}
	c := int(d.b[0])
	d.b = d.b[1:]
	return c % n
}

// key is one of few, so that rows meet calls: keys, slots of the limit "s", and its name.
func (d *draw) key() string { return []string{"k", "k2", "s/000", "s/001", "s"}[d.next(5)] }

// party is one of few.
func (d *draw) party() string { return []string{"a", "b", "c"}[d.next(3)] }

// owner is one of few, among them a reader group and no owner.
func (d *draw) owner() (o lease.Owner) {
	switch n := d.next(5); n {
	case 0:
		return lease.ReaderGroup(7)
	case 1:
		return lease.Owner{}
	default:
		o[0] = byte(n)
		return o
	}
}

var numbers = []lease.Token{
	0, 1, -1, 2, 7, 8, 100, 999, 1000, 1001, 1 << 40, 1<<40 + 1, lease.MaxToken - 2, lease.MaxToken - 1,
	lease.MaxToken, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1,
	253370764800000, 253370764800001, 32503680000000, math.MaxInt32 + 1, -62135596800000,
}

// value is anything that SQLite can store.
func (d *draw) value() any {
	switch d.next(8) {
	case 0:
		return nil
	case 1, 2, 3:
		return numbers[d.next(len(numbers))]
	case 4:
		return []string{"", "abc", "12", "9e99", "\x00", "\xff\n", "\t", "2"}[d.next(8)]
	case 5:
		return make([]byte, d.next(40))
	case 6:
		return []float64{1.5, -1e300, 9.3e18, math.Inf(1)}[d.next(4)]
	}
	o := d.owner()
	return o[:]
}

// moment is a time near the present, in the database's unit.
func (d *draw) moment() int64 {
	now := time.Now().UnixMilli()
	return now + []int64{60_000, -60_000, 1, 0, -4_000_000, 3_600_000}[d.next(6)]
}
