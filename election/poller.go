package election

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// every is the pause between two reads, a tenth more or less; it is four times as long after an
	// error.
	every = 250 * time.Millisecond
	// patience bounds a read.
	patience = 5 * time.Second
	// most keys are read in one statement.
	most = 500
)

// pollers reads, for each client, all keys that are observed through it. A client without observers
// has none.
var pollers = struct {
	sync.Mutex
	of map[*rowlock.Client]*poller
}{of: make(map[*rowlock.Client]*poller)}

type poller struct {
	locks   *rowlock.Client
	watches map[*watch]struct{} // guarded by the mutex of pollers
	added   chan struct{}
	stop    context.CancelFunc
}

// watch is one observer of a key.
type watch struct {
	p    *poller
	key  string
	last atomic.Pointer[state]
	news chan struct{} // there was a read since
}

// observe begins to watch a key. The first read follows at once.
func observe(locks *rowlock.Client, key string) *watch {
	pollers.Lock()
	defer pollers.Unlock()
	p := pollers.of[locks]
	if p == nil {
		p = &poller{
			locks: locks, watches: make(map[*watch]struct{}), added: make(chan struct{}, 1),
		}
		var ctx context.Context
		ctx, p.stop = context.WithCancel(context.Background())
		pollers.of[locks] = p
		go p.run(ctx)
	}
	w := &watch{p: p, key: key, news: make(chan struct{}, 1)}
	p.watches[w] = struct{}{}
	signal(p.added)
	return w
}

// leave ends a watch, and the poller after its last.
func (w *watch) leave() {
	pollers.Lock()
	defer pollers.Unlock()
	delete(w.p.watches, w)
	if len(w.p.watches) == 0 {
		w.p.stop()
		delete(pollers.of, w.p.locks)
	}
}

func (p *poller) run(ctx context.Context) {
	for pause := time.Duration(0); ; {
		select {
		case <-time.After(pause):
		case <-p.added:
		case <-ctx.Done():
			return
		}
		pause = every - every/10 + rand.N(every/5)
		if !p.read(ctx) {
			pause *= 4
		}
	}
}

// read tells each observer what its key's row says. It reports false if a statement failed.
func (p *poller) read(ctx context.Context) (ok bool) {
	ok = true
	watches := p.all()
	for some := range slices.Chunk(slices.Sorted(maps.Keys(watches)), most) {
		bounded, cancel := context.WithTimeout(ctx, patience)
		records, err := p.locks.Inspect(bounded, lease.Filter{Keys: some, Limit: len(some)})
		cancel()
		ok = ok && err == nil
		found := make(map[string]*state, len(records))
		for _, r := range records {
			found[r.Key] = stateOf(r)
		}
		for _, key := range some {
			s := found[key]
			if s == nil {
				s = &state{err: err}
			}
			tell(watches[key], s)
		}
	}
	return ok
}

func tell(watches []*watch, s *state) {
	for _, w := range watches {
		w.last.Store(s)
		signal(w.news)
	}
}

func (p *poller) all() map[string][]*watch {
	pollers.Lock()
	defer pollers.Unlock()
	all := make(map[string][]*watch)
	for w := range p.watches {
		all[w.key] = append(all[w.key], w)
	}
	return all
}

// signal wakes the receiver of c, which need not be waiting yet.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
