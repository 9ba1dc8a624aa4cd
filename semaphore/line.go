package semaphore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock"
)

// keeps is for how long the waiters of one process are granted slots in one turn, before other
// processes get theirs. It counts from the first grant.
const keeps = 50 * time.Millisecond

// line is the waiters of this process, in the order in which they came. One of them leads: it has
// the turn, and asks for those before it. Meanwhile a slot that is released here is handed to the
// first, without being free in between.
type line struct {
	mu      sync.Mutex
	waiters []*waiter
	leader  *waiter
	asking  bool // the leader asks for several slots of which too few may be free
	free    int  // how many slots are believed to be free; more or fewer may be
	freed   int  // how many were released since the last ask
	turn    *rowlock.Lock
	since   time.Time // of the first grant in the turn, or zero
	nudged  bool      // the leader was told that the turn is half over
}

type waiter struct {
	ctx     context.Context
	n       int
	signal  chan signal // has room for two: that it leads, and its permit
	claimed bool        // slots are being handed to it
	stop    func()      // ends its wait for the turn
	got     signal      // how its wait has ended, if it has read it while it led
}

// signal tells a waiter that it has a permit, that it gets none, or that it leads now.
type signal struct {
	p   *Permit
	err error
}

func (s signal) ends() bool { return s.p != nil || s.err != nil }

// join reports whether the waiter leads.
func (l *line) join(w *waiter) (leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = append(l.waiters, w)
	if leads = l.leader == nil; leads {
		l.leader = w
	}
	return leads
}

// leave removes w. It reports false if w has left, or leads: then a signal is on its way.
func (l *line) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leader != w && l.remove(w)
}

func (l *line) remove(w *waiter) bool {
	i := slices.Index(l.waiters, w)
	if i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
	}
	return i >= 0
}

// end removes a waiter that has led, and has another lead. It returns what the waiter was told, if
// anything, and the turn if that is to be released because no other waits here.
func (l *line) end(w *waiter) (got signal, over *rowlock.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(w)
	l.promote(w)
	if len(l.waiters) == 0 {
		over, l.turn = l.turn, nil
	}
	for got = w.got; !got.ends() && len(w.signal) > 0; {
		got = <-w.signal
	}
	return got, over
}

// promote has the last waiter lead if w did, because the first is the next to be given a slot.
func (l *line) promote(w *waiter) {
	if l.leader != w {
		return
	}
	l.leader, l.asking = nil, false
	if n := len(l.waiters); n > 0 {
		l.leader = l.waiters[n-1]
		l.leader.signal <- signal{} // has room: a waiter leads once
	}
}

// give tells a waiter how its wait has ended. It reports false if the waiter has left.
func (l *line) give(w *waiter, got signal) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.remove(w) {
		return false
	}
	w.signal <- got
	if w.stop != nil {
		w.stop()
	}
	l.promote(w)
	return true
}

// claim returns the first waiters, for which n slots are enough, for a hand-over that ends with
// give or unclaim. It returns none while another process has the turn, and while the leader asks
// for a first waiter that wants more slots than are believed to be free: later waiters would
// overtake it again and again.
func (l *line) claim(n int) (some []*waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking || l.turn == nil || l.spent() || l.turn.Context().Err() != nil {
		return nil
	}
	for _, w := range l.waiters {
		if w.claimed {
			continue
		}
		if w.n > n {
			break
		}
		w.claimed = true
		some, n = append(some, w), n-w.n
	}
	if len(some) > 0 {
		l.begin()
	}
	return some
}

// nudge reports, once in each turn, that half of it is over: the leader then finds out whether
// other processes wait, before hand-overs would have to stop.
func (l *line) nudge() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nudged || !l.older(keeps/2) {
		return false
	}
	l.nudged = true
	return true
}

func (l *line) unclaim(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.claimed = false
}

// renew reports whether the turn goes on. Otherwise it returns the turn that is over, if any.
func (l *line) renew(awaited func() bool) (over *rowlock.Lock, goesOn bool) {
	alone := l.late() && !awaited()
	l.mu.Lock()
	defer l.mu.Unlock()
	if alone { // the turn begins once more
		l.since, l.nudged = time.Time{}, false
	}
	if l.turn != nil && !l.spent() && l.turn.Context().Err() == nil {
		return nil, true
	}
	over, l.turn, l.since = l.turn, nil, time.Time{}
	return over, false
}

// awaits has stop called when w is given its permit, and reports false if it was.
func (l *line) awaits(w *waiter, stop func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.stop = stop
	return l.leader == w
}

// begins notes a turn, unless w leads no longer.
func (l *line) begins(w *waiter, turn *rowlock.Lock) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader == w {
		l.turn, l.since, l.nudged = turn, time.Time{}, false
	}
	return l.leader == w
}

// inTurn returns a channel that is closed when the turn ends by itself, or nil without one.
func (l *line) inTurn() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == nil {
		return nil
	}
	return l.turn.Context().Done()
}

// begin notes a grant in the turn.
func (l *line) begin() {
	if l.since.IsZero() {
		l.since = time.Now()
	}
}

// spent reports whether other processes are to get their slots.
func (l *line) spent() bool { return l.older(keeps) }

func (l *line) older(d time.Duration) bool { return !l.since.IsZero() && time.Since(l.since) > d }

// late reports whether the turn is at least half over.
func (l *line) late() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.older(keeps / 2)
}

// mayBeFree reports whether slots are believed to be free.
func (l *line) mayBeFree() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free > 0
}

func (l *line) released(slots int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free += slots
	l.freed += slots
}

// granted notes that n slots were granted. If there were fewer by what was known, all may be free.
func (l *line) granted(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free -= n; l.free < 0 {
		l.free = Max
	}
	l.begin()
}

// refused notes how many slots were seen free. What was released since ask may not be among them.
func (l *line) refused(free int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = free + l.freed
}

// ask returns the first waiter, and those behind it for which enough slots are free, as far as is
// known, of at most most. It returns none if slots are being handed to all of them, or leader leads
// no longer. The asking ends with asked.
func (l *line) ask(leader *waiter, most int) (some []*waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader != leader {
		return nil
	}
	l.free, l.freed = min(l.free, most), 0
	n := 0
	for _, w := range l.waiters {
		if w.claimed {
			continue
		}
		if len(some) > 0 && n+w.n > l.free {
			break
		}
		w.claimed = true
		some, n = append(some, w), n+w.n
	}
	l.asking = len(some) > 0 && some[0].n > max(1, l.free)
	return some
}

// asked ends what ask has begun. It reports whether leader leads no longer, and whether more slots
// are believed to be free.
func (l *line) asked(leader *waiter, some []*waiter) (done, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range some {
		w.claimed = false
	}
	if done = l.leader != leader; !done {
		l.asking = false
	}
	return done, l.free > 0
}
