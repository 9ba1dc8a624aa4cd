package etcd

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/singleflight"
)

// loans are the etcd leases that locks share. etcd grants one for a class of TTLs, for longer than
// those. It is lent until no more than the TTL is left of it, and the next is requested before
// that. None is kept alive, and none is revoked, because other locks use it.
type loans struct {
	ctx     context.Context
	client  *clientv3.Client
	timeout time.Duration
	asking  singleflight.Group
	wg      sync.WaitGroup

	mu     sync.Mutex
	open   map[int64]loan                 // by seconds: the newest of each class
	ahead  map[int64]bool                 // the classes whose next loan is requested
	ends   map[clientv3.LeaseID]time.Time // when leases end, for Holder.Remaining only
	closed bool
}

// loan is an etcd lease.
type loan struct {
	id    clientv3.LeaseID
	began time.Time // before it was requested
	lasts time.Duration
}

// term is a loan for one lock.
type term struct {
	id clientv3.LeaseID
	// spare is by how much the loan outlasted the TTL when it was lent.
	spare time.Duration
}

func newLoans(ctx context.Context, client *clientv3.Client, timeout time.Duration) *loans {
	return &loans{
		ctx:     ctx,
		client:  client,
		timeout: timeout,
		open:    make(map[int64]loan),
		ahead:   make(map[int64]bool),
		ends:    make(map[clientv3.LeaseID]time.Time),
	}
}

// left is at least what is left of the loan. The monotonic clock stops while a machine is
// suspended, and the wall clock can be set back, so the one that has gone further counts. A loan
// believed to be too old only causes another request.
func (l loan) left(now time.Time) time.Duration {
	return l.lasts - max(now.Sub(l.began), now.Round(0).Sub(l.began.Round(0)))
}

// longest is the longest lease that etcd grants, in seconds.
const longest = 9_000_000_000

// secondsFor is how long a loan for locks of this TTL lasts.
func secondsFor(ttl time.Duration) int64 {
	ttl = max(ttl, time.Millisecond)
	return int64(min(math.Ceil(ttl.Seconds()+max(ttl.Seconds()/8, 1)), longest))
}

// lend returns a loan of which at least ttl is left, or the longest. It seldom waits.
func (l *loans) lend(ctx context.Context, ttl time.Duration) (term, error) {
	seconds := secondsFor(ttl)
	ttl = min(ttl, longest*time.Second)
	l.mu.Lock()
	now := time.Now()
	at := l.open[seconds]
	spare := at.left(now) - ttl
	enough := at.id != 0 && spare >= 0
	if half := (at.lasts - ttl) / 2; enough && spare < half {
		l.aheadLocked(seconds, ttl+half)
	}
	l.mu.Unlock()
	if enough {
		return term{at.id, spare}, nil
	}
	return l.borrow(ctx, seconds, ttl)
}

// aheadLocked requests the next loan in the background.
func (l *loans) aheadLocked(seconds int64, least time.Duration) {
	if l.closed || l.ahead[seconds] {
		return
	}
	l.ahead[seconds] = true
	l.wg.Go(func() {
		_, _ = l.ask(seconds, least) // if it fails, the next lend requests one
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.ahead, seconds)
	})
}

// borrow waits for a new loan.
func (l *loans) borrow(ctx context.Context, seconds int64, ttl time.Duration) (term, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return term{}, context.Canceled
	}
	asked, got := time.Now(), make(chan struct{})
	var at loan
	var err error
	l.wg.Go(func() {
		at, err = l.ask(seconds, ttl)
		close(got)
	})
	l.mu.Unlock()
	select {
	case <-ctx.Done():
		return term{}, ctx.Err()
	case <-got:
	}
	if err != nil {
		return term{}, err
	}
	if at.left(asked) < ttl { // another caller had requested it long before
		return l.borrow(ctx, seconds, ttl)
	}
	return term{at.id, max(0, at.left(time.Now())-ttl)}, nil
}

// ask has etcd grant a lease, once for all concurrent callers, unless one that ended meanwhile has
// left a loan of which least is left.
func (l *loans) ask(seconds int64, least time.Duration) (loan, error) {
	v, err, _ := l.asking.Do(fmt.Sprint(seconds), func() (any, error) {
		l.mu.Lock()
		at := l.open[seconds]
		l.mu.Unlock()
		if at.id != 0 && at.left(time.Now()) >= least {
			return at, nil
		}
		ctx, cancel := context.WithTimeout(l.ctx, share(l.timeout, 1))
		defer cancel()
		began := time.Now()
		resp, err := l.client.Grant(ctx, seconds)
		if err != nil {
			return loan{}, err
		}
		at = loan{resp.ID, began, time.Duration(min(resp.TTL, longest)) * time.Second}
		l.keep(seconds, at)
		return at, nil
	})
	at, _ := v.(loan)
	return at, err
}

func (l *loans) keep(seconds int64, at loan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for s, old := range l.open {
		if old.left(now) <= 0 {
			delete(l.open, s)
		}
	}
	l.open[seconds] = at
	l.noteLocked(at.id, at.began.Add(at.lasts))
}

// drop forgets loans that etcd has ended.
func (l *loans) drop(terms []term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, at := range l.open {
		for _, t := range terms {
			if t.id == at.id {
				delete(l.open, s)
			}
		}
	}
}

// wait returns when no request is under way, after ctx has ended.
func (l *loans) wait() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wg.Wait()
}

// remaining returns what is left of a lease, within a second. It never returns too much, except
// after a change of leader. 0 means that the lease is over or unknown. It asks etcd once for each
// lease.
func (l *loans) remaining(ctx context.Context, id clientv3.LeaseID) time.Duration {
	l.mu.Lock()
	ends, known := l.ends[id]
	l.mu.Unlock()
	if known && time.Until(ends) > 0 {
		return time.Until(ends)
	}
	if ctx.Err() != nil {
		return 0
	}
	v, _, _ := l.asking.Do(fmt.Sprint("lease ", id), func() (any, error) {
		ctx, cancel := context.WithTimeout(ctx, share(l.timeout, 1))
		defer cancel()
		began := time.Now()
		resp, err := l.client.TimeToLive(ctx, id)
		if err != nil || resp.TTL <= 0 {
			return time.Duration(0), nil
		}
		lasts := time.Duration(min(resp.TTL, longest)) * time.Second
		l.mu.Lock()
		defer l.mu.Unlock()
		l.noteLocked(id, began.Add(lasts))
		return lasts, nil
	})
	return v.(time.Duration)
}

// noteLocked remembers when a lease ends, and forgets those that ended a minute ago.
func (l *loans) noteLocked(id clientv3.LeaseID, ends time.Time) {
	for old, at := range l.ends {
		if time.Since(at) > time.Minute {
			delete(l.ends, old)
		}
	}
	l.ends[id] = ends
}

// hold puts the key that says that a lock is held, for as long as the loan lasts. Its value is by
// how many milliseconds the loan outlasts the lock's TTL.
func (c *Cluster) hold(key string, t term) clientv3.Op {
	spare := strconv.FormatInt(t.spare.Milliseconds(), 10)
	return clientv3.OpPut(c.holderOf(key), spare, clientv3.WithLease(t.id))
}

// remaining returns what is left of a lock's TTL; 0 if the TTL is over and etcd has not noticed
// yet.
func (c *Cluster) remaining(ctx context.Context, holder *mvccpb.KeyValue) time.Duration {
	spare, _ := strconv.ParseInt(string(holder.Value), 10, 64)
	left := c.loans.remaining(ctx, clientv3.LeaseID(holder.Lease))
	return max(0, left-time.Duration(spare)*time.Millisecond)
}
