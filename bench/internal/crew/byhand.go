package crew

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/raw"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// mostHands is how many connections a process has by hand, at most: as many as rowlock has pinned
// connections, so that many processes do not need more than a server allows.
const mostHands = 3

// byHand polls with the raw statements.
type byHand struct {
	d     *rig.Database
	hands []*hand
	pause time.Duration
}

// hand is a connection, which goroutines share, a statement at a time.
type hand struct {
	sync.Mutex
	raw  raw.Statements
	conn *rig.Conn
}

func openRaw(ctx context.Context, d *rig.Database, w Way, goroutines int) (locker, error) {
	b := &byHand{d: d, pause: w.Pause}
	for range min(goroutines, mostHands) {
		s, conn, err := raw.Dial(ctx, d)
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		b.hands = append(b.hands, &hand{raw: s, conn: conn})
	}
	return b, nil
}

func (b *byHand) lock(ctx context.Context, goroutine int, key string) (func() error, error) {
	h, owner := b.hands[goroutine%len(b.hands)], lease.NewOwner()
	for {
		err := h.use(func() error { _, err := h.raw.Take([]byte(key), owner); return err })
		if err == nil {
			return func() error { return b.unlock(h, key, owner) }, nil
		}
		if !errors.Is(err, rig.ErrNotOne) && !b.conflict(err) {
			return nil, fmt.Errorf("take %q: %w", key, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(b.pause/2 + rand.N(b.pause)):
		}
	}
}

// unlock tries again at once: a file that is busy, or a deadlock, has freed nothing.
func (b *byHand) unlock(h *hand, key string, owner lease.Owner) error {
	for {
		err := h.use(func() error { return h.raw.Clear([]byte(key), owner) })
		if err == nil || !b.conflict(err) {
			return err
		}
	}
}

func (h *hand) use(do func() error) error {
	h.Lock()
	defer h.Unlock()
	return do()
}

func (b *byHand) conflict(err error) bool {
	return b.d.Dialect.Classify(err).Class == sqlstore.Conflict
}

func (b *byHand) close() error {
	for _, h := range b.hands {
		h.conn.Close()
	}
	return nil
}

// own locks as PostgreSQL itself does, with one goroutine: the connection is the holder. A wait ends
// when the holder unlocks, not when the turn does.
type own struct{ h *rig.Hand }

func openOwn(ctx context.Context, d *rig.Database) (locker, error) {
	h, err := rig.NewHand(ctx, d, nil, map[string]string{
		"lock":   d.SQL("SELECT pg_advisory_lock(hashtextextended(?, 0)) IS NOT NULL"),
		"unlock": d.SQL("SELECT pg_advisory_unlock(hashtextextended(?, 0))"),
	})
	return own{h}, err
}

func (o own) lock(_ context.Context, _ int, key string) (func() error, error) {
	_, err := o.h.Read("lock", key)
	return func() error { _, err := o.h.Read("unlock", key); return err }, err
}

func (o own) close() error { o.h.Close(); return nil }
