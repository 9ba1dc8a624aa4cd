package waitq

import (
	"slices"
	"sync"
)

// Turn is what a waiter is called with.
type Turn[G any] struct {
	// Given says that the key was handed over, as Grant has it. If not, it may be free: it is the waiter's turn to bid.
	Given bool
	Grant G
}

// Waiter stands in one line. W is what it wants, G what it is given with a hand-over.
type Waiter[W, G any] struct {
	Key  string
	Want W
	// Turn has at most one call in it. It is nil until the waiter has to wait: who is first may never have to.
	Turn chan Turn[G]
	// News is signalled when the place in the line, or what is known of the holder, may have changed; nil if nobody looks.
	News chan struct{}

	bids bool // it is called like all, but no key is handed to it
	gone bool // it wants the key no more; a hand-over to it may be under way
}

// Lines are the lines of all keys, of which only the head ever bids: asks the database. Make them with New.
type Lines[W, G any] struct {
	mu    sync.Mutex
	lines map[string]*line[W, G]
}

// line is the waiters of one key, the head first.
type line[W, G any] struct {
	waiters []*Waiter[W, G]
	bidder  *Waiter[W, G] // is asking the database, or was called to
	again   bool          // a call came meanwhile, of which the bidder may not see the cause
	holding bool          // others are given a chance first
	looking int           // waiters with News

	alone [1]*Waiter[W, G] // room for waiters, as long as there is one
}

// arrival is a line and its first waiter, in one allocation: most lines never have another.
type arrival[W, G any] struct {
	line   line[W, G]
	waiter Waiter[W, G]
}

// New returns lines without anybody.
func New[W, G any]() *Lines[W, G] { return &Lines[W, G]{lines: make(map[string]*line[W, G])} }

// Join puts a waiter at the end of key's line. It reports whether it is the first: it then bids at once. Whoever bids says how
// that ended: with Stay, Got or Leave.
func (q *Lines[W, G]) Join(key string, want W, news bool) (w *Waiter[W, G], first bool) {
	return q.join(key, want, news, false)
}

// JoinToBid is Join for one that has no use for the key by itself: it is called to bid, and the key is never handed over to it.
func (q *Lines[W, G]) JoinToBid(key string, want W, news bool) (w *Waiter[W, G], first bool) {
	return q.join(key, want, news, true)
}

func (q *Lines[W, G]) join(key string, want W, news, bids bool) (w *Waiter[W, G], first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if first = l == nil; first {
		a := &arrival[W, G]{waiter: Waiter[W, G]{Key: key, Want: want, bids: bids}}
		l, w = &a.line, &a.waiter
		l.bidder, l.waiters = w, l.alone[:0]
		q.lines[key] = l
	} else {
		w = &Waiter[W, G]{Key: key, Want: want, Turn: make(chan Turn[G], 1), bids: bids}
	}
	if news {
		w.News = make(chan struct{}, 1)
		l.looking++
	}
	l.waiters = append(l.waiters, w)
	return w, first
}

// Stay says that w has bid and lost. If it was called again meanwhile, it will find that in Turn.
func (q *Lines[W, G]) Stay(w *Waiter[W, G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[w.Key]
	if l == nil || l.bidder != w {
		return
	}
	l.bidder = nil
	if w.Turn == nil {
		w.Turn = make(chan Turn[G], 1)
	}
	if l.again {
		l.call()
	}
}

// Got takes w out of the line: it has the key by its own bid. It reports whether others wait.
func (q *Lines[W, G]) Got(w *Waiter[W, G]) (others bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(w)
	return q.lines[w.Key] != nil
}

// Leave takes w out of the line: it wants the key no more. If it was called, the next one is. If it was given the key at this
// very moment, turn says so, and the key is its own to use or give back.
func (q *Lines[W, G]) Leave(w *Waiter[W, G]) (turn Turn[G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.gone = true
	select {
	case turn = <-w.Turn:
	default:
	}
	if bidder := q.remove(w); bidder {
		q.call(w.Key)
	}
	return turn
}

// remove reports whether w was bidding.
func (q *Lines[W, G]) remove(w *Waiter[W, G]) (bidder bool) {
	l := q.lines[w.Key]
	if l == nil {
		return false
	}
	i := slices.Index(l.waiters, w)
	if i < 0 {
		return false
	}
	if i == 0 {
		l.waiters[0] = nil
		l.waiters = l.waiters[1:]
	} else {
		l.waiters = slices.Delete(l.waiters, i, i+1)
	}
	if w.News != nil {
		l.looking--
	}
	if len(l.waiters) == 0 {
		delete(q.lines, w.Key)
	}
	l.tell()
	if bidder = l.bidder == w; bidder {
		l.bidder, l.again = nil, false
	}
	return bidder
}

// Call has the head of key's line bid. It reports whether anybody waits.
func (q *Lines[W, G]) Call(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.call(key)
}

func (q *Lines[W, G]) call(key string) bool {
	l := q.lines[key]
	if l != nil {
		l.call()
	}
	return l != nil
}

func (l *line[W, G]) call() {
	if l.bidder != nil || l.holding {
		l.again = true
		return
	}
	l.bidder, l.again = l.waiters[0], false
	l.bidder.Turn <- Turn[G]{} // there is room: who does not bid has been called for nothing else
}

// Hold keeps the head from bidding, whoever calls it, until Resume: a key was released for others to take.
func (q *Lines[W, G]) Hold(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		l.holding = true
	}
}

// Resume ends a Hold, and has the head bid.
func (q *Lines[W, G]) Resume(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		l.holding = false
		l.call()
	}
}

// Claim takes the head out of key's line for a hand-over, which ends with Give or Return. It returns nil if nobody waits, or the
// head is bidding and must not be granted the key twice, or only bids.
func (q *Lines[W, G]) Claim(key string) *Waiter[W, G] {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil || l.bidder != nil || l.holding || l.waiters[0].bids {
		return nil
	}
	w := l.waiters[0]
	q.remove(w)
	return w
}

// Give hands w what it was claimed for. It reports false if w has gone meanwhile: the grant is then the caller's to pass on.
func (q *Lines[W, G]) Give(w *Waiter[W, G], g G) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.gone {
		return false
	}
	w.Turn <- Turn[G]{Given: true, Grant: g}
	return true
}

// Return puts w back at the head of its line after a hand-over that came to nothing, and has the head bid.
func (q *Lines[W, G]) Return(w *Waiter[W, G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !w.gone {
		l := q.lines[w.Key]
		if l == nil {
			l = &line[W, G]{}
			q.lines[w.Key] = l
		}
		l.waiters = slices.Insert(l.waiters, 0, w)
		if w.News != nil {
			l.looking++
		}
	}
	q.call(w.Key)
}

// Ahead is how many stand before w in this process.
func (q *Lines[W, G]) Ahead(w *Waiter[W, G]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[w.Key]; l != nil {
		return max(0, slices.Index(l.waiters, w))
	}
	return 0
}

// Tell signals News to those of key's waiters who look.
func (q *Lines[W, G]) Tell(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		l.tell()
	}
}

func (l *line[W, G]) tell() {
	if l.looking == 0 {
		return
	}
	for _, w := range l.waiters {
		if w.News == nil {
			continue
		}
		select {
		case w.News <- struct{}{}:
		default: // not looked at the last yet
		}
	}
}

// Len is how many wait for key.
func (q *Lines[W, G]) Len(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lines[key]; l != nil {
		return len(l.waiters)
	}
	return 0
}
