package bidq

import (
	"bytes"
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// unturned is what is known of the processes that wait for the same key without turns: those of an
// older version, or with a small pool. A release within a turn wakes none of them, and what they
// poll is hardly ever free. So now and then a turn ends with a wake for one of them, and the next
// turn begins a little later.
type unturned struct {
	others   []lease.Owner // as last read
	next     int           // which of them is woken next
	counts   bool          // the next poll reads them
	majority int           // how often in a row they were found to be most of those that wait
}

// settled is after how many counts it is known which processes have turns, and after how many
// rounds how long they are: at first, no process has turns.
const settled = 4

// useless reports whether turns are better given up: most processes have none, the key is held for
// so long that it is not busy, or a round takes so long that the server may end the wait for a
// turn. The caller has the mutex.
func (r *relay) useless() bool {
	return r.majority >= settled ||
		r.pace.rounds >= settled && r.pace.round > longestRound || r.pace.pair() > 4*r.q.cfg.PollMin
}

// owes reports whether a process without turns is due. One that is woken keeps the key for a slice,
// and wakes another one afterwards. So each gets about as much as a process with turns, and waits
// for about ten slices. All processes count by the key's tokens, so that together they wake one
// every so often. The caller has the mutex.
func (r *relay) owes() bool {
	if len(r.others) == 0 {
		return false
	}
	turned := max(1, r.pace.crowd-len(r.others))
	each := r.q.slice() * time.Duration(min(turned, 10)) / time.Duration(min(len(r.others), 2))
	every := int64(1) << bits.Len64(uint64(each/max(r.pace.pair(), time.Microsecond))) >> 1
	return r.last/max(every, 1) != (r.last-int64(r.turn.grants))/max(every, 1)
}

// wake wakes a process that has no turns, if one is due or if no process is left that has. The
// caller has the mutex.
func (r *relay) wake(key string, awaited bool) {
	leaves := r.turn != nil && r.turn.leaves
	last := time.Since(r.alien) > idleTurns || !r.returns && r.pace.queue() == 1
	if awaited && (leaves || last) && !r.stopped {
		from := r.before()
		r.wg.Go(func() { r.q.hints.AnnounceFrom(from, key) })
	}
	if leaves {
		r.turn.limit.Reset(r.q.cfg.PollMin / 2)
	}
}

// before returns the name before that of the process to wake: the one after this process would be
// the same each time. The caller has the mutex.
func (r *relay) before() lease.Owner {
	if len(r.others) == 0 {
		return lease.NewOwner()
	}
	slices.SortFunc(r.others, func(a, b lease.Owner) int { return bytes.Compare(a[:], b[:]) })
	r.next++
	o := r.others[r.next%len(r.others)]
	for i := len(o) - 1; i >= 0; i-- {
		if o[i]--; o[i] != 0xff {
			break
		}
	}
	return o
}

// count reads which are the processes without turns, if that is due and key is polled.
func (r *relay) count(ctx context.Context, keys []string) {
	if !r.on.Load() {
		return
	}
	r.mu.Lock()
	key, due := r.key, r.counts && slices.Contains(keys, r.key)
	r.counts = r.counts && !due
	r.mu.Unlock()
	if !due {
		return
	}
	all := r.q.store.Unturned(ctx, key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.key != key || !r.orderly {
		return
	}
	if len(r.others) == 0 {
		r.next = rand.N(1000) // several processes wake them
	}
	if r.others = all; len(all) > 1 && 2*len(all) >= r.pace.crowd {
		r.majority++
	} else {
		r.majority = 0
	}
}
