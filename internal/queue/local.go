package queue

import (
	"slices"
	"sync"
)

// signalOf wakes a waiter.
type signalOf[G any] struct {
	// Given says that the key was handed over, as Grant says. Without it the key may be free, and
	// the waiter bids.
	Given bool
	Grant G
}

// localWaiter stands in one queue. W is what it wants, G what a hand-over gives it.
type localWaiter[W, G any] struct {
	Key  string
	Want W
	// Signal has room for one signal. It is nil until the waiter has lost a bid, because the first
	// waiter may never have to wait.
	Signal chan signalOf[G]
	// News is signaled when the position or what is known of the holder may have changed. It is nil
	// if the caller does not watch.
	News chan struct{}

	attemptsOnly bool         // it is woken like all waiters, but a key is never handed to it
	gone         bool         // it wants the key no more; a hand-over to it may be under way
	woken        bool         // a release or a poll has had it attempt; kept for members of a group
	group        *group[W, G] // of which it is a member, or nil
}

// localQueues are the queues of all keys. Make them with newLocalQueues.
type localQueues[W, G any] struct {
	mu    sync.Mutex
	byKey map[string]*keyQueue[W, G]
}

// keyQueue is the waiters of one key, the head first.
type keyQueue[W, G any] struct {
	waiters    []*localWaiter[W, G]
	attempting *localWaiter[W, G] // bids, or was woken to bid
	again      bool               // a signal came meanwhile, and the bidder may not see its cause
	holding    bool               // other processes bid first
	watching   int                // waiters with News

	alone [1]*localWaiter[W, G] // room for waiters while there is one
}

// arrival is a queue and its first waiter in one allocation, because most queues never get another.
type arrival[W, G any] struct {
	queue  keyQueue[W, G]
	waiter localWaiter[W, G]
}

// newLocalQueues returns queues without waiters.
func newLocalQueues[W, G any]() *localQueues[W, G] {
	return &localQueues[W, G]{byKey: make(map[string]*keyQueue[W, G])}
}

// Join puts a waiter at the end of key's queue. The first one bids at once. A bidder reports how
// its bid ended with Lost, Won or Leave. A waiter that bidsOnly is woken like any other, but a key
// is never handed to it, because it has no use for this key alone.
func (q *localQueues[W, G]) Join(key string, want W, news, bidsOnly bool) (w *localWaiter[W, G], first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.byKey[key]
	if first = k == nil; first {
		a := &arrival[W, G]{waiter: localWaiter[W, G]{Key: key, Want: want, attemptsOnly: bidsOnly}}
		k, w = &a.queue, &a.waiter
		k.attempting, k.waiters = w, k.alone[:0]
		q.byKey[key] = k
	} else {
		w = &localWaiter[W, G]{Key: key, Want: want, Signal: make(chan signalOf[G], 1), attemptsOnly: bidsOnly}
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
func (q *localQueues[W, G]) Lost(w *localWaiter[W, G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.byKey[w.Key]
	if k == nil || k.attempting != w {
		return
	}
	if len(w.Signal) > 0 {
		return // it has bid of its own accord, as readers do, was woken meanwhile, and will bid again
	}
	k.attempting = nil
	if w.Signal == nil {
		w.Signal = make(chan signalOf[G], 1)
	}
	if k.again {
		k.wake()
	}
}

// Won takes w out of its queue, because its bid was granted. It reports whether others wait.
func (q *localQueues[W, G]) Won(w *localWaiter[W, G]) (others bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(w)
	return q.byKey[w.Key] != nil
}

// Leave takes w out of its queue, because it wants the key no more. If w was woken, the next waiter
// is. If the key was handed to w at this very moment, the signal says so, and w must use the grant
// or release it.
func (q *localQueues[W, G]) Leave(w *localWaiter[W, G]) (s signalOf[G]) {
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
func (q *localQueues[W, G]) remove(w *localWaiter[W, G]) (bidder bool) {
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
	if bidder = k.attempting == w; bidder {
		k.attempting, k.again = nil, false
	}
	return bidder
}

// Wake has the head of key's queue bid. It reports whether there is one.
func (q *localQueues[W, G]) Wake(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wake(key)
}

func (q *localQueues[W, G]) wake(key string) bool {
	k := q.byKey[key]
	if k != nil {
		k.wake()
	}
	return k != nil
}

func (k *keyQueue[W, G]) wake() {
	if k.attempting != nil || k.holding {
		k.again = true
		return
	}
	w := k.head()
	if w == nil { // the waiters that are about to leave pass it on
		k.again = true
		return
	}
	k.attempting, k.again = w, false
	if w.group != nil {
		w.woken = true
		w.group.wake()
		return
	}
	w.Signal <- signalOf[G]{} // has room: a waiter with a signal is the bidder
}

// head is the first waiter but those that another key is being handed to: they will leave, or
// Return wakes them.
func (k *keyQueue[W, G]) head() *localWaiter[W, G] {
	for _, w := range k.waiters {
		if w.group == nil || !w.group.claimed {
			return w
		}
	}
	return nil
}

// Hold keeps the head from bidding until Resume, so that other processes bid first.
func (q *localQueues[W, G]) Hold(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[key]; k != nil {
		k.holding = true
	}
}

// Resume ends a Hold and has the head bid.
func (q *localQueues[W, G]) Resume(key string) {
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
func (q *localQueues[W, G]) Claim(key string) *localWaiter[W, G] {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.byKey[key]
	if k == nil || k.attempting != nil || k.holding {
		return nil
	}
	w := k.head()
	if w == nil || w.attemptsOnly || w.group != nil && w.group.attempts {
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
func (q *localQueues[W, G]) Give(w *localWaiter[W, G], g G) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.gone {
		return false
	}
	w.Signal <- signalOf[G]{Given: true, Grant: g}
	return true
}

// Return puts w back at the head of its queue after a failed hand-over, and has the head bid.
func (q *localQueues[W, G]) Return(w *localWaiter[W, G]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !w.gone {
		k := q.byKey[w.Key]
		if k == nil {
			k = &keyQueue[W, G]{}
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
func (q *localQueues[W, G]) Ahead(w *localWaiter[W, G]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[w.Key]; k != nil {
		return max(0, slices.Index(k.waiters, w))
	}
	return 0
}

// Notify signals News to those of key's waiters that watch.
func (q *localQueues[W, G]) Notify(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[key]; k != nil {
		k.notify()
	}
}

func (k *keyQueue[W, G]) notify() {
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
func (q *localQueues[W, G]) Len(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.byKey[key]; k != nil {
		return len(k.waiters)
	}
	return 0
}
