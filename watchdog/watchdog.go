package watchdog

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Renewer is the part of a lease.Store that a Watchdog needs.
type Renewer interface {
	Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error)
}

// Config configures a Watchdog.
type Config struct {
	// Batch is the largest number of leases in one renewal; 0 means 500.
	Batch int
	// Parallel is how many renewals may be under way at once; 0 means 2, so that one may hang on
	// the network while the next passes.
	Parallel int
	// Failed is called, without a mutex held, after a renewal of so many leases returned an error.
	// They are renewed again until their deadlines. ctx is the Holder's if there is one lease
	// only, and otherwise context.Background(). May be nil.
	Failed func(ctx context.Context, err error, leases int)
	// Renewed is called, without a mutex held, after a call to the store has extended so many
	// leases, and took so long: once for each call, of which Batch leases take one. A lease that is
	// Quiet is not counted. ctx is as for Failed. May be nil.
	Renewed func(ctx context.Context, leases int, took time.Duration)
	// Skewed is called, without a mutex held, if the store's clock ran ahead of ours by that much
	// between two renewals. May be nil.
	Skewed func(ahead time.Duration)
	// Late is called, without a mutex held, for each lease that was extended more than a quarter of
	// Every later than was due: after a renewal that failed, or that found the row locked. A lease
	// that is Quiet is left out. May be nil.
	Late func(l lease.Lease, by time.Duration)
}

// Watchdog watches leases. Make one with New and stop it with Stop. It is safe for concurrent use.
type Watchdog struct {
	store  Renewer
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{}

	mu sync.Mutex
	schedule
	clock   skew
	stopped bool
}

// schedule is what the loop does next.
type schedule struct {
	queue    queue
	ready    urgent        // due, waiting for a renewal to end
	parallel int           // renewals under way
	wakes    time.Duration // when the loop wakes by itself; 0 before its first look
}

// New returns a Watchdog that renews at store. Its goroutine runs until Stop.
func New(store Renewer, cfg Config) *Watchdog {
	cfg.Batch = cmp.Or(cfg.Batch, 500)
	cfg.Parallel = cmp.Or(cfg.Parallel, 2)
	d := &Watchdog{store: store, cfg: cfg, wake: make(chan struct{}, 1)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.wg.Go(d.loop)
	return d
}

// Keep begins to watch h, whose granting request was sent at that moment. It watches nothing and
// returns the reason if the Watchdog was stopped ([lease.ErrClosed]), if the lease's deadline has
// passed ([lease.ErrLost]), or if Until has ([lease.ErrMaxHold]).
func (d *Watchdog) Keep(h *Held, sent time.Time) error {
	h.trust(sent)
	d.mu.Lock()
	now, ahead := time.Now(), d.clock.since(sent)
	if ahead > 0 {
		h.advance(ahead, now)
	}
	if d.stopped || h.over(now) != nil {
		err := d.refusal(h, sent, now, ahead)
		d.mu.Unlock()
		return err
	}
	d.queue.put(h)
	sooner := h.at < d.wakes // waking a thread would cost more than the rest of a short lock
	d.mu.Unlock()
	if sooner {
		d.nudge()
	}
	return nil
}

// Drop stops watching h. It returns false if h is not watched: it has ended, was dropped, or was
// never kept. No renewal of h begins after Drop has returned; the answer to one under way is
// ignored.
func (d *Watchdog) Drop(h *Held) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	watched := cmp.Or(h.guard, h)
	h.guard = nil
	if watched.place == 0 {
		return false
	}
	d.queue.remove(watched)
	return true
}

// Fenced says that the holder's own transaction may have the row locked from now on, by a fence
// that was sent at that moment. One that was sent after Leaving and has passed shows that the
// transaction of Leaving was rolled back: until that had ended, the row was locked.
func (d *Watchdog) Fenced(h *Held, sent time.Time) {
	d.mu.Lock()
	h.leaving = h.leaving && sent.Sub(began) < h.fenced
	h.fenced = time.Since(began)
	d.mu.Unlock()
}

// Leaving says that the caller's own transaction may release the lease. A renewal that then finds
// the lease gone ends it with lease.ErrUnlocked. One that finds it alive shows that the transaction
// was rolled back.
func (d *Watchdog) Leaving(h *Held) {
	d.mu.Lock()
	h.fenced, h.leaving = time.Since(began), true
	if h.watched() {
		h.retry(time.Now())
		d.queue.put(h)
	}
	d.mu.Unlock()
	d.nudge()
}

// InTx reports what the holder's own transactions may have done. fenced: Fenced or Leaving was
// called and no renewal has found the row unlocked since. left: Leaving was called and no renewal
// or fence has found the lease alive since.
func (d *Watchdog) InTx(h *Held) (fenced, left bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return h.fenced != 0, h.leaving
}

// Deadline returns until when h is trusted unless it is renewed.
func (d *Watchdog) Deadline(h *Held) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return momentOf(cmp.Or(h.guard, h).deadline)
}

// Stop ends all renewals and returns when every goroutine has ended. It does not end the leases
// that are still watched: their holder does.
func (d *Watchdog) Stop() {
	d.mu.Lock()
	d.stopped = true
	d.mu.Unlock()
	d.cancel()
	d.wg.Wait()
}

func (d *Watchdog) nudge() {
	select {
	case d.wake <- struct{}{}:
	default: // the loop is about to wake anyway
	}
}

// loop sleeps until the next event, ends leases that are over and sends renewals that are due.
func (d *Watchdog) loop() {
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

// step does what is due at now and returns how long to sleep. 0 means that there may be more to do
// at once.
func (d *Watchdog) step(now time.Time) time.Duration {
	d.mu.Lock()
	ended := d.takeOver(now)
	d.gather(now)
	batch, until := d.takeBatch()
	wait := d.sleep(now)
	d.mu.Unlock()
	for _, e := range ended {
		e.h.Holder.End(e.cause)
	}
	if batch != nil {
		d.wg.Go(func() { d.renew(batch, until) })
		return 0
	}
	return wait
}

// takeOver removes the leases that are over.
func (s *schedule) takeOver(now time.Time) (ended []ending) {
	for len(s.queue) > 0 {
		h := s.queue[0]
		cause := h.over(now)
		if cause == nil && h.at <= now.Sub(began) && h.putOff() {
			s.queue.put(h)
			continue
		}
		if cause == nil {
			break // later, or due for renewal
		}
		s.queue.remove(h)
		ended = append(ended, ending{h, cause})
	}
	return ended
}

// gather moves due leases to ready, from where they are sent after a renewal has ended; in the
// queue only their deadlines remain. If any lease is due, those that are due soon are renewed with
// it until the batch is full. A tenth of the interval early costs nothing; without it, leases would
// come due one by one and cost a statement each.
func (d *Watchdog) gather(now time.Time) {
	early := time.Duration(0)
	for len(d.queue) > 0 {
		h := d.queue[0]
		wait := h.due - now.Sub(began)
		if h.flying || wait > early || wait > 0 && len(d.ready)%d.cfg.Batch == 0 {
			return
		}
		h.flying, h.Renewed = true, true
		h.due = never
		h.schedule()
		d.queue.put(h)
		heap.Push(&d.ready, h)
		early = h.Every / 10
	}
}

// takeBatch returns the leases of the next renewal, those that end first, and the last of their
// deadlines, when it has become pointless. It returns nil if no lease is ready or enough renewals
// are under way.
func (d *Watchdog) takeBatch() (batch []*Held, until time.Duration) {
	if d.parallel >= d.cfg.Parallel {
		return nil, until
	}
	for len(d.ready) > 0 && len(batch) < d.cfg.Batch {
		h := heap.Pop(&d.ready).(*Held)
		if h.flying = h.watched(); h.flying { // else dropped, or ended
			batch, until = append(batch, h), max(until, h.deadline)
		}
	}
	if batch != nil {
		d.parallel++
	}
	return batch, until
}

// sleep sets when the loop wakes, and never puts that off: after a lock held for a moment the alarm
// stays and once finds nothing to do; the next lock need not set it again.
func (s *schedule) sleep(now time.Time) time.Duration {
	next := never
	if len(s.queue) > 0 {
		next = s.queue[0].at
	}
	if s.wakes <= now.Sub(began) || next < s.wakes {
		s.wakes = next
	}
	return max(s.wakes-now.Sub(began), 1)
}

// renew sends one renewal and applies its answers. It ends when all its leases are over, because a
// network that swallows requests must not block all renewals forever.
func (d *Watchdog) renew(batch []*Held, until time.Duration) {
	d.mu.Lock() // or Resume would change a lease meanwhile
	// One order for all renewals, so that none deadlocks with another.
	slices.SortFunc(batch, func(a, b *Held) int { return cmp.Compare(a.Key, b.Key) })
	reqs := make([]lease.RenewRequest, len(batch))
	for i, h := range batch {
		reqs[i] = lease.RenewRequest{Lease: h.Lease, TTL: h.TTL}
	}
	d.mu.Unlock()
	ctx, cancel := context.WithDeadline(d.ctx, momentOf(until))
	defer cancel()
	sent := time.Now()
	answers := adapter.Renew(ctx, d.store, reqs)
	took := time.Since(sent)
	ended, late, ahead := d.apply(batch, reqs, sent, answers)
	for _, e := range ended {
		e.h.Holder.End(e.cause)
	}
	for _, l := range late {
		d.cfg.Late(l.Lease, l.by)
	}
	d.tell(batch, answers, took)
	if ahead > 0 && d.cfg.Skewed != nil {
		d.cfg.Skewed(ahead)
	}
	d.nudge()
}

// tell tells how many leases a renewal has extended, and for how many it failed.
func (d *Watchdog) tell(batch []*Held, answers []lease.Renewed, took time.Duration) {
	var extended, failed some
	for i, a := range answers {
		switch {
		case a.Err != nil:
			failed.add(batch[i], a.Err)
		case a.Outcome == lease.Extended && !batch[i].Quiet:
			extended.add(batch[i], nil)
		}
	}
	if extended.n > 0 && d.cfg.Renewed != nil {
		d.cfg.Renewed(extended.context(), extended.n, took)
	}
	if failed.n > 0 && d.cfg.Failed != nil && d.ctx.Err() == nil {
		d.cfg.Failed(failed.context(), failed.err, failed.n)
	}
}

// some are leases of one renewal, with the error of the first.
type some struct {
	first *Held
	err   error
	n     int
}

func (s *some) add(h *Held, err error) {
	if s.n++; s.n == 1 {
		s.first, s.err = h, err
	}
}

// context is that of the only lease.
func (s *some) context() context.Context {
	if s.n == 1 {
		return s.first.Holder.Context()
	}
	return context.Background()
}

func (d *Watchdog) apply(
	batch []*Held, reqs []lease.RenewRequest, sent time.Time, answers []lease.Renewed,
) (ended []ending, belated []delayed, ahead time.Duration) {
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
		if h.Lease != reqs[i].Lease {
			continue // Resume has changed it meanwhile: the answer is about the lease it was
		}
		if by := h.delay(sent); by > 0 && answers[i].Outcome == lease.Extended && d.cfg.Late != nil {
			belated = append(belated, delayed{reqs[i].Lease, by})
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
		d.queue.put(h)
	}
	return ended, belated, ahead
}

// answer applies one answer and returns why the lease is over, or nil. The store's clock may have
// run ahead by late since then.
func (h *Held) answer(a lease.Renewed, late time.Duration, sent, now time.Time) error {
	switch o := a.Outcome; {
	case o == lease.Extended:
		if sent.Sub(began) > h.fenced {
			h.fenced, h.leaving = 0, false // unlocked: the holder's transaction has ended
		}
		h.trust(sent)
		if h.leaving { // sent before Leaving was called: only the next one shows a rollback
			h.retry(now)
		}
	case o == lease.Busy:
		if h.fenced != 0 {
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
