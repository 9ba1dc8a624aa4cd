package watchdog

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Renewer is the part of a lease.Store that a Dog needs.
type Renewer interface {
	Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error)
}

// Config is what a Dog can be told.
type Config struct {
	// Batch is the most leases in one renewal; 0 means 500.
	Batch int
	// Parallel is how many renewals may be under way at once; 0 means 2: one may hang on the network and the next still pass.
	Parallel int
	// Failed is called, without any lock held, when a renewal returned an error. The leases are tried again until their
	// deadlines. May be nil.
	Failed func(err error, leases int)
	// Skewed is called, without any lock held, when the store's clock ran ahead of ours by that much between two renewals.
	// May be nil.
	Skewed func(ahead time.Duration)
}

// Dog watches leases. Make one with New and stop it with Stop.
type Dog struct {
	store  Renewer
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{}

	mu       sync.Mutex
	queue    queue
	ready    []*Held   // due, waiting for a renewal to end
	parallel int       // renewals under way
	wakes    time.Time // when the loop wakes by itself; zero before its first look
	clock    skew
	stopped  bool
}

// New returns a Dog that renews at store, with its goroutine running.
func New(store Renewer, cfg Config) *Dog {
	cfg.Batch = cmp.Or(cfg.Batch, 500)
	cfg.Parallel = cmp.Or(cfg.Parallel, 2)
	d := &Dog{store: store, cfg: cfg, wake: make(chan struct{}, 1)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.wg.Go(d.loop)
	return d
}

// Keep begins to watch h, whose granting request was sent at that moment. It does nothing and says
// why when the Dog was stopped ([lease.ErrClosed]), when the lease's deadline has passed already
// ([lease.ErrLost]), and when Until has ([lease.ErrMaxHold]).
func (d *Dog) Keep(h *Held, sent time.Time) error {
	h.trust(sent)
	d.mu.Lock()
	now, ahead := time.Now(), d.clock.since(sent)
	h.advance(ahead, now)
	if err := d.refusal(h, sent, now, ahead); err != nil {
		d.mu.Unlock()
		return err
	}
	heap.Push(&d.queue, h)
	sooner := h.at.Before(d.wakes) // a lock held for a moment wakes nobody: waking a thread costs more than the rest of it
	d.mu.Unlock()
	if sooner {
		d.nudge()
	}
	return nil
}

// Drop stops watching h. It reports false when h is not watched: it has ended, was dropped, or was never kept. No renewal of h
// is begun after Drop has returned; one that has begun finds its answer ignored.
func (d *Dog) Drop(h *Held) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !h.watched() {
		return false
	}
	d.queue.remove(h)
	return true
}

// Fenced notes that the holder's own transaction may have the row locked from now on.
func (d *Dog) Fenced(h *Held) {
	d.mu.Lock()
	h.fenced = time.Now()
	d.mu.Unlock()
}

// MayBeFenced reports whether Fenced or Leaving was called and no renewal has found the row unlocked since.
func (d *Dog) MayBeFenced(h *Held) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !h.fenced.IsZero()
}

// Leaving notes that the lease may be released by the caller's own transaction. A renewal that then finds it gone ends it
// with lease.ErrUnlocked, and one that finds it alive shows that the transaction was rolled back.
func (d *Dog) Leaving(h *Held) {
	d.mu.Lock()
	h.fenced, h.leaving = time.Now(), true
	if h.watched() {
		h.retry(time.Now())
		d.queue.fix(h)
	}
	d.mu.Unlock()
	d.nudge()
}

// MayHaveLeft reports whether Leaving was called and no renewal has found the lease alive since.
func (d *Dog) MayHaveLeft(h *Held) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return h.leaving
}

// Deadline returns until when h is trusted unless it is renewed.
func (d *Dog) Deadline(h *Held) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return h.deadline
}

// Stop stops renewing and returns when every goroutine is gone. Leases still watched are not ended: their holder does that.
func (d *Dog) Stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.cancel()
	d.wg.Wait()
}

func (d *Dog) nudge() {
	select {
	case d.wake <- struct{}{}:
	default: // a nudge is waiting already
	}
}

// loop sleeps until the next event, ends what is over and sends off what is due.
func (d *Dog) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.wake:
		case <-timer.C:
		}
		for wait := time.Duration(0); wait == 0; {
			wait = d.step(time.Now())
			timer.Reset(wait)
		}
	}
}

// step does what is to be done at now, and returns how long to sleep; 0 means there may be more to do at once.
func (d *Dog) step(now time.Time) time.Duration {
	d.mu.Lock()
	ended := d.takeOver(now)
	d.gather(now)
	batch, until := d.takeBatch()
	wait := d.sleep(now)
	d.mu.Unlock()
	for _, e := range ended {
		e.h.End(e.cause)
	}
	if batch != nil {
		d.wg.Go(func() { d.renew(batch, until) })
		return 0
	}
	return wait
}

// takeOver removes the leases whose time is over.
func (d *Dog) takeOver(now time.Time) (ended []ending) {
	for len(d.queue) > 0 {
		h := d.queue[0]
		cause := h.over(now)
		if cause == nil {
			break // later, or due for renewal
		}
		heap.Pop(&d.queue)
		ended = append(ended, ending{h, cause})
	}
	return ended
}

// gather moves what is due to ready, from where it is sent when a renewal has ended; in the queue only its deadline is left.
// If anything is due, what would be soon goes along until the batch is full: a tenth of the way early costs nothing, and
// without it leases would come due one by one and cost a statement each.
func (d *Dog) gather(now time.Time) {
	early := time.Duration(0)
	for len(d.queue) > 0 {
		h := d.queue[0]
		if h.flying || h.due.Add(-early).After(now) || h.due.After(now) && len(d.ready)%d.cfg.Batch == 0 {
			return
		}
		h.flying = true
		h.due = now.Add(never)
		h.schedule()
		d.queue.fix(h)
		d.ready = append(d.ready, h)
		early = h.Every / 10
	}
}

// takeBatch returns the leases of the next renewal and when it will have become pointless, or nil if there are none or enough
// renewals are under way.
func (d *Dog) takeBatch() (batch []*Held, until time.Time) {
	if d.parallel >= d.cfg.Parallel {
		return nil, until
	}
	d.ready = slices.DeleteFunc(d.ready, func(h *Held) bool { return !h.watched() }) // dropped or ended meanwhile
	n := min(len(d.ready), d.cfg.Batch)
	if n == 0 {
		return nil, until
	}
	batch = slices.Clone(d.ready[:n])
	d.ready = slices.Delete(d.ready, 0, n)
	d.parallel++
	for _, h := range batch {
		if h.deadline.After(until) {
			until = h.deadline
		}
	}
	return batch, until
}

// sleep sets when the loop wakes. It never puts that off: for a lock held for a moment the alarm stays, and finds nothing, once;
// the next lock need not set it again.
func (d *Dog) sleep(now time.Time) time.Duration {
	next := now.Add(never)
	if len(d.queue) > 0 {
		next = d.queue[0].at
	}
	if !d.wakes.After(now) || next.Before(d.wakes) {
		d.wakes = next
	}
	return max(d.wakes.Sub(now), 1)
}

// renew sends one renewal and applies its answers. It gives up when all its leases are over: a network that swallows requests
// must not take the renewals' places for good.
func (d *Dog) renew(batch []*Held, until time.Time) {
	slices.SortFunc(batch, func(a, b *Held) int { return cmp.Compare(a.Key, b.Key) }) // one order for all: no deadlocks
	reqs := make([]lease.RenewRequest, len(batch))
	for i, h := range batch {
		reqs[i] = lease.RenewRequest{Lease: h.Lease, TTL: h.TTL}
	}
	ctx, cancel := context.WithDeadline(d.ctx, until)
	defer cancel()
	sent := time.Now()
	answers, err := d.store.Renew(ctx, reqs)
	if err == nil && len(answers) != len(batch) {
		err = fmt.Errorf("%w: %d answers to %d renewals", lease.ErrCorrupt, len(answers), len(batch))
	}
	if err != nil { // of the call: so of each
		answers = slices.Repeat([]lease.Renewed{{Err: err}}, len(batch))
	}
	ended, ahead := d.apply(batch, sent, answers)
	for _, e := range ended {
		e.h.End(e.cause)
	}
	d.tellFailed(answers)
	if ahead > 0 && d.cfg.Skewed != nil {
		d.cfg.Skewed(ahead)
	}
	d.nudge()
}

func (d *Dog) tellFailed(answers []lease.Renewed) {
	var first error
	failed := 0
	for _, a := range answers {
		if a.Err == nil {
			continue
		}
		if failed++; first == nil {
			first = a.Err
		}
	}
	if failed > 0 && d.cfg.Failed != nil && d.ctx.Err() == nil {
		d.cfg.Failed(first, failed)
	}
}

func (d *Dog) apply(batch []*Held, sent time.Time, answers []lease.Renewed) (ended []ending, ahead time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parallel--
	now := time.Now()
	late := d.clock.since(sent) // the answers may be from before the clock ran ahead
	ahead = d.adjust(sent, now, answers)
	for i, h := range batch {
		h.flying = false
		if !h.watched() {
			continue // dropped or ended meanwhile
		}
		if answers[i].Err != nil {
			h.retry(now)
		} else if cause := h.answer(answers[i], late, sent, now); cause != nil {
			d.queue.remove(h)
			ended = append(ended, ending{h, cause})
			continue
		} else if answers[i].Outcome == lease.Extended {
			h.advance(late, now)
		}
		d.queue.fix(h)
	}
	return ended, ahead
}

// answer applies one answer and returns why the lease is over, or nil. The store's clock may have run ahead by late since then.
func (h *Held) answer(a lease.Renewed, late time.Duration, sent, now time.Time) error {
	switch o := a.Outcome; {
	case o == lease.Extended:
		if sent.After(h.fenced) {
			h.fenced, h.leaving = time.Time{}, false // the row was not locked: the holder's transaction has ended
		}
		h.trust(sent)
	case o == lease.Busy:
		if !h.fenced.IsZero() {
			h.extendFenced(sent, a.Remaining, late)
		}
		h.retry(now)
	case h.leaving:
		return lease.ErrUnlocked
	default:
		return lease.ErrLost
	}
	return nil
}
