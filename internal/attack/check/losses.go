package check

import (
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// lateLoss is how late a machine that is busy may run a timer. A longer stall of the process is
// recorded.
const lateLoss = 500 * time.Millisecond

// Losses judges when holders were told, and returns how long after the lock's deadline the latest
// was, stalls of its process apart.
func Losses(r *Report, events []history.Event) (worst time.Duration) {
	stalls := make(map[string][]*history.Event)
	for i := range events {
		if e := &events[i]; e.Kind == history.Stall && e.Act == "process" {
			stalls[e.Process] = append(stalls[e.Process], e)
		}
	}
	granted := grantsOf(events)
	for i := range events {
		e := &events[i]
		switch {
		case e.Kind == history.Left && e.Value > 0:
			r.violation(Goroutines, "", e.Told, "%d in %s: %s", e.Value, e.Process, e.Err)
		case e.Kind == history.Kept:
			r.violation(KeptKey, e.Key, e.Told, "for %s, and %s was told an error, or the end of its lock",
				time.Duration(e.Told-e.Sent), e.Process)
		case e.Kind == history.Loss:
			due := e.Sent
			if g := granted[lock{e.Holder(), e.Key}]; g != nil {
				// An answer can come when the lease is over. Its lock is then lost from the first.
				due = max(due, g.Told)
			}
			late := time.Duration(e.Told - due - longestStall(stalls[e.Process], e.Sent-int64(lateLoss), e.Told))
			worst = max(worst, late)
			if late > lateLoss {
				r.violation(LateLoss, e.Key, e.Told, "token %d of %s (%s): %s late", e.Token, e.Process, e.Act, late)
			}
		}
	}
	return worst
}

// lock is one key of a handle.
type lock struct {
	history.Holder
	key string
}

func grantsOf(events []history.Event) map[lock]*history.Event {
	all := make(map[lock]*history.Event)
	for i := range events {
		if e := &events[i]; e.Kind == history.Grant && e.Result == history.OK {
			all[lock{e.Holder(), e.Key}] = e
		}
	}
	return all
}

// Stale counts the locks that were granted when their lease was over already.
func Stale(events []history.Event) (n int) {
	granted := grantsOf(events)
	for i := range events {
		e := &events[i]
		if g := granted[lock{e.Holder(), e.Key}]; e.Kind == history.Loss && g != nil && e.Sent < g.Told {
			n++
		}
	}
	return n
}

// Overlaps are for how long two holders of a key both believed that they had it, for each such
// pair. Each belief ends when its holder unlocks or is told of its loss. What a killed process
// believed is not counted, nor a lock that its holder released in a transaction.
func Overlaps(events []history.Event) (list []time.Duration) {
	ends := make(map[lock]int64)
	for i := range events {
		e := &events[i]
		end := map[history.Kind]int64{history.Unlock: e.Sent, history.Loss: e.Told}[e.Kind]
		if e.Left {
			end = 1 // it had unlocked in a transaction, whose commit may have been answered late
		}
		if is := (lock{e.Holder(), e.Key}); end > 0 && (ends[is] == 0 || end < ends[is]) {
			ends[is] = end
		}
	}
	for _, k := range byKey(events) {
		grants := slices.Clone(k.grants)
		slices.SortFunc(grants, func(a, b *history.Event) int { return int(min(max(a.Token-b.Token, -1), 1)) })
		for i := 1; i < len(grants); i++ {
			end := ends[lock{grants[i-1].Holder(), k.key}]
			if both := end - max(grants[i-1].Told, grants[i].Told); end > 0 && both > 0 {
				list = append(list, time.Duration(both))
			}
		}
	}
	slices.Sort(list)
	return list
}
