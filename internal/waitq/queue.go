package waitq

import (
	"slices"
	"sync"
)

// Signal wakes a waiter.
type Signal[G any] struct {
	// Given says that the key was handed over, as Grant says. Without it the key may be free, and
	// the waiter bids.
	Given bool
	Grant G
}

// Waiter stands in one queue. W is what it wants, G what a hand-over gives it.
type Waiter[W, G any] struct {
	Key  string
	Want W
	// Signal has room for one signal. It is nil until the waiter has lost a bid, because the first
	// waiter may never have to wait.
	Signal chan Signal[G]
	// News is signaled when the position or what is known of the holder may have changed. It is nil
	// if the caller does not watch.
	News chan struct{}

	bids  bool         // it is woken like all waiters, but a key is never handed to it
	gone  bool         // it wants the key no more; a hand-over to it may be under way
	woken bool         // a release or a poll has made it the bidder; kept for members of a group
	group *Group[W, G] // of which it is a member, or nil
}

// Queues are the queues of all keys. Make them with New.
type Queues[W, G any] struct {
	mu    sync.Mutex
	byKey map[string]*queue[W, G]
}

// queue is the waiters of one key, the head first.
type queue[W, G any] struct {
	waiters  []*Waiter[W, G]
	bidder   *Waiter[W, G] // bids, or was woken to bid
	again    bool          // a signal came meanwhile, and the bidder may not see its cause
	holding  bool          // other processes bid first
	watching int           // waiters with News

	alone [1]*Waiter[W, G] // room for waiters while there is one
}

// arrival is a queue and its first waiter in one allocation, because most queues never get another.
type arrival[W, G any] struct {
	queue  queue[W, G]
	waiter Waiter[W, G]
}

// New returns queues without waiters.
func New[W, G any]() *Queues[W, G] {
	return &Queues[W, G]{byKey: make(map[string]*queue[W, G])}
}

// Join puts a waiter at the end of key's queue. The first one bids at once. A bidder reports how
// its bid ended with Lost, Won or Leave. A waiter that bidsOnly is woken like any other, but a key
// is never handed to it, because it has no use for this key alone.
func (q *Queues[W, G]) Join(key string, want W, news, bidsOnly bool) (w *Waiter[W, G], first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.byKey[key]
	if first = k == nil; first {
		a := &arrival[W, G]{waiter: Waiter[W, G]{Key: key, Want: want, bids: bidsOnly}}
		k, w = &a.queue, &a.waiter
		k.bidder, k.waiters = w, k.alone[:0]
		q.byKey[key] = k
	} else {
		w = &Waiter[W, G]{Key: key, Want: want, Signal: make(chan Signal[G], 1), bids: bidsOnly}
	}
	if news {
		w.News = make(chan struct{}, 1)
		k.watching++
	}
	k.waiters = append(k.waiters, w)
	return w, first
}

// Lost reports that w has bid and was not granted the key. If w was woken again meanwhile, Signal
// says so.
func (q *Queues[W, G]) Lost(w *Waiter[W, G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.byKey[w.Key]
	if k == nil || k.bidder != w {
		return
	}
	if len(w.Signal) > 0 {
		return // it has bid of its own accord, as readers do, was woken meanwhile, and will bid again
	}
	k.bidder = nil
	if w.Signal == nil {
		w.Signal = make(chan Signal[G], 1)
	}
	if k.again {
		k.wake()
	}
}

// Won takes w out of its queue, because its bid was granted. It reports whether others wait.
func (q *Queues[W, G]) Won(w *Waiter[W, G]) (others bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(w)
	return q.byKey[w.Key] != nil
}

// Leave takes w out of its queue, because it wants the key no more. If w was woken, the next waiter
// is. If the key was handed to w at this very moment, the signal says so, and w must use the grant
// or release it.
func (q *Queues[W, G]) Leave(w *Waiter[W, G]) (s Signal[G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.gone = true
	select {
	case s = <-w.Signal:
	default:
	}
	if bidder := q.remove(w); bidder {
		q.wake(w.Key)
	}
	return s
}

// remove reports whether w was bidding.
func (q *Queues[W, G]) remove(w *Waiter[W, G]) (bidder bool) {
	k := q.byKey[w.Key]
	if k == nil {
		return false
	}
	i := slices.Index(k.waiters, w)
	if i < 0 {
		return false
	}
	if i == 0 {
		k.waiters[0] = nil
		k.waiters = k.waiters[1:]
	} else {
		k.waiters = slices.Delete(k.waiters, i, i+1)
	}
	if w.News != nil {
		k.watching--
	}
	if len(k.waiters) == 0 {
		delete(q.byKey, w.Key)
	}
	k.notify()
	if bidder = k.bidder == w; bidder {
		k.bidder, k.again = nil, false
	}
	return bidder
}

// Wake has the head of key's queue bid. It reports whether there is one.
func (q *Queues[W, G]) Wake(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wake(key)
}

func (q *Queues[W, G]) wake(key string) bool {
	k := q.byKey[key]
	if k != nil {
		k.wake()
	}
	return k != nil
}

func (k *queue[W, G]) wake() {
	if k.bidder != nil || k.holding {
		k.again = true
		return
	}
	w := k.head()
	if w == nil { // the waiters that are about to leave pass it on
		k.again = true
		return
	}
	k.bidder, k.again = w, false
	if w.group != nil {
		w.woken = true
		w.group.wake()
		return
	}
	w.Signal <- Signal[G]{} // has room: a waiter with a signal is the bidder
}

// head is the first waiter but those that another key is being handed to: they will leave, or
// Return wakes them.
func (k *queue[W, G]) head() *Waiter[W, G] {
	for _, w := range k.waiters {
		if w.group == nil || !w.group.claimed {
			return w
		}
	}
	return nil
}

// Hold keeps the head from bidding until Resume, so that other processes bid first.
func (q *Queues[W, G]) Hold(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[key]; k != nil {
		k.holding = true
	}
}

// Resume ends a Hold and has the head bid.
func (q *Queues[W, G]) Resume(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[key]; k != nil {
		k.holding = false
		k.wake()
	}
}

// Claim takes the head out of key's queue for a hand-over, which ends with Give or Return. It
// returns nil without a waiter, if the head bids only, and while the head bids, because it could be
// granted the key twice.
func (q *Queues[W, G]) Claim(key string) *Waiter[W, G] {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.byKey[key]
	if k == nil || k.bidder != nil || k.holding {
		return nil
	}
	w := k.head()
	if w == nil || w.bids || w.group != nil && w.group.bids {
		return nil
	}
	q.remove(w)
	if w.group != nil {
		w.group.claimed = true
	}
	return w
}

// Give gives w what it was claimed for. It reports false if w has left meanwhile: the caller must
// then pass the grant on.
func (q *Queues[W, G]) Give(w *Waiter[W, G], g G) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.gone {
		return false
	}
	w.Signal <- Signal[G]{Given: true, Grant: g}
	return true
}

// Return puts w back at the head of its queue after a failed hand-over, and has the head bid.
func (q *Queues[W, G]) Return(w *Waiter[W, G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !w.gone {
		k := q.byKey[w.Key]
		if k == nil {
			k = &queue[W, G]{}
			q.byKey[w.Key] = k
		}
		k.waiters = slices.Insert(k.waiters, 0, w)
		if w.News != nil {
			k.watching++
		}
	}
	if g := w.group; g != nil {
		g.claimed = false
		q.wakeGroup(g)
		return
	}
	q.wake(w.Key)
}

// Ahead is how many waiters of this process stand before w.
func (q *Queues[W, G]) Ahead(w *Waiter[W, G]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[w.Key]; k != nil {
		return max(0, slices.Index(k.waiters, w))
	}
	return 0
}

// Notify signals News to those of key's waiters that watch.
func (q *Queues[W, G]) Notify(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[key]; k != nil {
		k.notify()
	}
}

func (k *queue[W, G]) notify() {
	if k.watching == 0 {
		return
	}
	for _, w := range k.waiters {
		if w.News == nil {
			continue
		}
		select {
		case w.News <- struct{}{}:
		default: // the last news was not read yet
		}
	}
}

// Len is how many wait for key.
func (q *Queues[W, G]) Len(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[key]; k != nil {
		return len(k.waiters)
	}
	return 0
}
