package era

import (
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// zero is when the numbers of eras begin.
var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	// Step is how long two numbers of eras last, of which the odd one is for clusters. All last for
	// 79 years.
	Step = 10 * time.Minute
	// shift makes room for 512 tokens in each µs of a step. No key is granted so fast.
	shift = 9
	// least is what two eras are apart if the clock does not tell: as many tokens as it has for a
	// second. A whole step would let eras run away from a clock that has gone back once, because each
	// opening of a file can begin one, and none would be of the clock again.
	least = 1 << 29
	// ahead is how far an era may be ahead of this machine's clock.
	ahead = 24 * time.Hour
	last  = int64(lease.MaxToken>>lease.EpochShift-2) &^ 1
)

// Start returns the token that every token granted before now is below, as long as the database's
// clock does not go back. It is the start of an era that begins now.
func Start(now time.Time) lease.Token {
	since := max(0, now.Sub(zero))
	return lease.EpochStart(int64(since/Step)*2) + lease.Token((since%Step).Microseconds()<<shift)
}

// check refuses a start that no client has written. In an odd era tokens would look like those of a
// cluster, and after the last they would overflow. It refuses one far ahead of now, by this machine's
// clock, because no era after it would be of the clock, and a restore would repeat its tokens.
func check(start lease.Token, now time.Time) error {
	epoch := lease.Epoch(start)
	began := zero.Add(time.Duration(epoch/2) * Step)
	switch {
	case start < 0 || epoch == 0: // no era, or one that no clock has set
		return nil
	case epoch%2 != 0 || epoch > last:
		return fmt.Errorf("%w: rowlock_meta has the start %d, of era %d; eras are even, and the last "+
			"is %d: delete the row that was edited", lease.ErrCorrupt, start, epoch, last)
	case began.Sub(now) > ahead:
		return fmt.Errorf("%w: start %d in rowlock_meta is of %s by the database's clock, and this "+
			"machine's says %s: set the one that is wrong; if the database's was ahead, or the row was "+
			"edited, stop all clients and delete the row",
			lease.ErrCorrupt, start, began.Format(time.DateTime), now.UTC().Format(time.DateTime))
	}
	return nil
}

// next returns the start of the era after the one that began at before: that of the clock, because
// a failover can also have forgotten the eras before it. If the clock has gone back, it is one that
// is above. here is this machine's clock.
func next(now time.Time, before lease.Token, here time.Time) (lease.Token, error) {
	start := Start(now)
	if start <= before || lease.Epoch(start) > last {
		start = after(before)
	}
	if lease.Epoch(start) > last {
		return 0, fmt.Errorf("%w: rowlock_meta has no era after %d: a row there was edited, or the "+
			"database's clock was decades ahead", lease.ErrTokenExhausted, lease.Epoch(before))
	}
	return start, check(start, here)
}

// after returns a start above before, in the same era if it leaves that half of its tokens.
func after(before lease.Token) lease.Token {
	epoch := lease.Epoch(before)
	if next := before + least; epoch%2 == 0 && next < lease.EpochStart(epoch)+1<<(lease.EpochShift-1) {
		return next
	}
	return lease.EpochStart(epoch&^1 + 2)
}
