package table

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// hints is what Listen needs: where to, how often, and that Close ends it.
type hints struct {
	pool  sqlstore.Pool // nil if no connection of it can be spared
	every time.Duration

	mu        sync.Mutex
	closed    bool
	base      context.Context // ends with close
	end       context.CancelFunc
	listening sync.WaitGroup
	hearing   map[lease.Owner]bool // processes that a message for them alone reaches
}

func (h *hints) hears(process lease.Owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hearing == nil {
		h.hearing = make(map[lease.Owner]bool)
	}
	h.hearing[process] = true
}

func (h *hints) deaf(process lease.Owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.hearing, process)
}

// lost says that the connection was: until there is another, no message reaches anybody here.
func (h *hints) lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.hearing)
}

func (h *hints) reaches(process lease.Owner) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hearing[process]
}

func (h *hints) open(db sqlstore.Pool, o Options) {
	if o.Hints {
		h.pool = db
	}
	h.every = cmp.Or(o.Watch, 10*time.Millisecond)
	h.base, h.end = context.WithCancel(context.Background())
}

// begin returns a context for one Listen, or false on a closed store. The Listen calls end when it has ended.
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
}

// Listen hears of keys that have come free: what a server delivers, or else that the database has changed at all.
func (s *Store) Listen(ctx context.Context, heard func(key string)) error {
	return s.listen(ctx, lease.Owner{}, func(key string, _ lease.Owner) { heard(key) })
}

// ListenAs hears of keys that have come free, but for those of which another process was told.
func (s *Store) ListenAs(ctx context.Context, process lease.Owner, heard func(key string, chosen bool)) error {
	if process.IsZero() {
		return fmt.Errorf("%w: listen: the zero owner is no process; use lease.NewOwner", lease.ErrConfig)
	}
	defer s.hints.deaf(process)
	return s.listen(ctx, process, func(key string, chosen lease.Owner) {
		s.hints.hears(process)
		heard(key, !chosen.IsZero())
	})
}

func (s *Store) listen(ctx context.Context, process lease.Owner, heard func(key string, chosen lease.Owner)) error {
	within, end, ok := s.hints.begin(ctx)
	if !ok {
		return fmt.Errorf("%w: listen", lease.ErrClosed)
	}
	defer end()
	var err error
	switch {
	case s.d.Listener != nil:
		err = s.keepListening(within, process, heard)
	case s.d.Version != nil:
		err = s.watch(within, heard)
	default:
		return fmt.Errorf("%w: %s has no messages; there is only the poll", lease.ErrUnsupported, s.d.Name())
	}
	if ctx.Err() == nil && within.Err() != nil {
		err = fmt.Errorf("%w: listen", lease.ErrClosed)
	}
	return err
}

// keepListening begins anew whenever the connection is lost, until ctx ends. Clients that lost a server at the same moment
// come back at different ones.
func (s *Store) keepListening(ctx context.Context, process lease.Owner, heard func(key string, chosen lease.Owner)) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.RandomizationFactor = 50*time.Millisecond, 5*time.Second, 0.5
	for {
		err := s.d.Listener.Listen(ctx, s.hints.pool, s.channel(), process, func(key string, chosen lease.Owner) {
			pauses.Reset()
			heard(key, chosen)
		})
		s.hints.lost()
		if errors.Is(err, lease.ErrUnsupported) || errors.Is(err, lease.ErrConfig) {
			return err
		}
		if err := pause(ctx, pauses.NextBackOff()); err != nil {
			return err
		}
	}
}

// channel is a name for this instance of the tables alone, and an identifier that needs no quotes: databases, schemas and
// prefixes share one server.
func (s *Store) channel() string {
	sum := sha256.Sum256([]byte(s.instance + "\x00" + s.d.Names().Prefix))
	return "rowlock_" + hex.EncodeToString(sum[:16])
}

// A database that changes all the time is looked at up to restless times as seldom: that it has changed then says next to nothing.
const restless = 5

// watch calls heard whenever somebody else has changed the database.
func (s *Store) watch(ctx context.Context, heard func(key string, chosen lease.Owner)) error {
	tick := time.NewTicker(s.hints.every)
	defer tick.Stop()
	changes := 0
	for seen := (version{}); ; {
		now, err := s.version(ctx)
		switch {
		case err != nil:
		case now != seen:
			seen = now
			heard("", lease.Owner{})
			changes = min(changes+1, restless)
			tick.Reset(s.hints.every * time.Duration(changes))
		case changes > 0:
			changes = 0
			tick.Reset(s.hints.every)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// version says what a session has seen of the database.
type version struct {
	session *sqlstore.Session
	n       int64
}

// version asks before anything else that is pending: it takes microseconds, and nobody waits for a row. An error says nothing;
// the next tick asks again.
func (s *Store) version(ctx context.Context) (version, error) {
	var now version
	_, err := s.once(ctx, newOp(lane.Renew, task{other: func(ctx context.Context, session *sqlstore.Session) (err error) {
		now.session = session
		now.n, err = s.d.Version(ctx, session)
		return err
	}}))
	if err != nil {
		return version{}, err // now may still be written to
	}
	return now, nil
}

// Announce tells everybody who listens, once: it is a hint, and there is the poll.
func (s *Store) Announce(ctx context.Context, keys []string) error {
	if !s.Wakes() || len(keys) == 0 {
		return nil
	}
	_, err := s.once(ctx, newOp(lane.Release, task{other: func(ctx context.Context, session *sqlstore.Session) error {
		return s.d.Listener.Announce(ctx, session, s.channel(), keys)
	}}))
	if err != nil {
		return s.explain("announce", keys[0], err)
	}
	return nil
}

// Wakes reports whether the server delivers messages.
func (s *Store) Wakes() bool { return s.d.Listener != nil }

// Wake tells one process that listens and waits, once: it is a hint, and there is the poll.
func (s *Store) Wake(ctx context.Context, process lease.Owner, keys []string) error {
	if !s.Wakes() || len(keys) == 0 {
		return nil
	}
	_, err := s.once(ctx, newOp(lane.Release, task{other: func(ctx context.Context, session *sqlstore.Session) error {
		return s.d.Listener.Wake(ctx, session, s.channel(), process, keys)
	}}))
	if err != nil {
		return s.explain("wake", keys[0], err)
	}
	return nil
}
