package table

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// bellMuted is for how long nothing is sent after a message could not be, because the caller of
// Unlock waits for it.
const bellMuted = 5 * time.Second

// waits is a registration: a key for which a process may be woken.
type waits struct {
	process lease.Owner
	key     string
}

// hints is what Listen needs: where to listen and how often. Close ends it.
type hints struct {
	pool  adapter.Pool // nil if the pool can spare no connection
	every time.Duration
	bell  aside
	// sources are the connections or watches that hear of the others' releases.
	sources atomic.Int64
	// reached are the processes that a message for them alone reaches.
	reached sync.Map

	mu        sync.Mutex
	closed    bool
	base      context.Context // ends with close
	end       context.CancelFunc
	listening sync.WaitGroup
	awaited   map[waits]time.Time // until when a process may be woken for a key
}

func (h *hints) open(db adapter.Pool, d *sqlstore.Dialect, o Options) {
	if o.Hints {
		h.pool = db
	}
	h.every = cmp.Or(o.Watch, 10*time.Millisecond)
	h.bell.open(db, d.Setup)
	h.bell.mute = bellMuted
	h.base, h.end = context.WithCancel(context.Background())
}

// begin returns a context for one Listen, or false on a closed store. Listen must call end.
func (h *hints) begin(ctx context.Context) (_ context.Context, end func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, false
	}
	h.listening.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.base, cancel)
	return ctx, func() { stop(); cancel(); h.listening.Done() }, true
}

func (h *hints) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.listening.Wait()
	h.bell.close()
}

// bellTimeout bounds a message. The waiters poll if it is not sent by then.
const bellTimeout = 500 * time.Millisecond

// send runs f, which sends a message, on a pinned connection or, where to send one may wait, on the
// bell: a session that is neither a pinned connection nor one that hears.
func (s *Store) send(
	ctx context.Context, verb string, keys []string, f func(context.Context, *conn.Session) error,
) (err error) {
	switch {
	case s.d.Listener == nil || len(keys) == 0, s.d.Apart && s.hints.pool == nil:
		return nil // no connection can be spared: the waiters poll
	case s.d.Apart:
		ctx, cancel := context.WithTimeout(ctx, bellTimeout)
		defer cancel()
		err = s.hints.bell.use(ctx, f)
	default:
		err = s.once(ctx, s.newOp(conn.Release, task{other: f}))
	}
	if err != nil {
		err = s.explain(verb, keys[0], err)
	}
	return err
}
