package latch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// hints tell other processes that a latch is open, and hear it from them. Polling guarantees
// progress; a hint only reduces latency.
type hints struct {
	s    *Latches
	pool adapter.Pool // nil: no connection can be spared to listen on

	mu      sync.Mutex
	off     bool
	end     context.CancelFunc // of the listener, if there is one
	leave   *time.Timer        // ends an idle listener
	news    map[lease.Owner]item
	telling bool
}

// item is a generation that others may want to know of.
type item struct {
	row  rows.Row
	sure bool // it has changed; otherwise a party has counted down, perhaps the last
}

// idleTimeout is how long a process listens after its last wait.
const idleTimeout = 10 * time.Second

// gather is how long counts of a process are gathered for one look at the latch.
const gather = 5 * time.Millisecond

func (h *hints) open(s *Latches, db dialect.DB, limit int) {
	h.s, h.news = s, make(map[lease.Owner]item)
	h.off = s.cfg.NoHints || s.d.Listener == nil
	if limit == 0 || limit > s.cfg.Connections+1 {
		h.pool = db
	}
}

// channel names this instance of the tables alone. The name is an identifier that needs no quotes.
func (h *hints) channel() string {
	sum := sha256.Sum256([]byte(h.s.instance + "\x00" + h.s.d.Names().Prefix))
	return "rowlock_latch_" + hex.EncodeToString(sum[:16])
}

// listen begins to listen, if nothing does.
func (h *hints) listen() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leave != nil {
		h.leave.Stop()
	}
	if h.off || h.end != nil || h.s.stopped.Err() != nil {
		return
	}
	var ctx context.Context
	ctx, h.end = context.WithCancel(h.s.stopped)
	h.s.begins(func() { h.hear(ctx) })
}

// idle ends the listening in a while, if the process then waits for nothing.
func (h *hints) idle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end == nil {
		return
	}
	h.leave = time.AfterFunc(idleTimeout, func() {
		h.s.rows.mu.Lock()
		defer h.s.rows.mu.Unlock()
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.s.rows.at) == 0 && h.end != nil {
			h.end()
			h.end = nil
		}
	})
}

// hear reconnects whenever the connection is lost.
func (h *hints) hear(ctx context.Context) {
	pauses := retry.Growing(50*time.Millisecond, 5*time.Second, 0.5)
	for {
		err := h.s.d.Listener.Listen(ctx, h.pool, h.channel(), lease.Owner{},
			func(key string, _ lease.Owner) {
				pauses.Reset()
				var id lease.Owner // zero: any
				copy(id[:], key)
				h.s.rows.poke(id)
			})
		if errors.Is(err, lease.ErrUnsupported) || errors.Is(err, lease.ErrConfig) {
			h.s.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "rowlock: latches are polled",
				slog.Any("error", err))
			return
		}
		if !retry.Sleep(ctx, pauses.NextBackOff()) {
			return
		}
	}
}

// counted is called when a party has counted down.
func (s *Latches) counted(l *Latch) {
	if !s.rows.counted(l.row.ID) {
		s.hints.add(item{row: l.row})
	}
}

// announce is called when a generation has changed.
func (h *hints) announce(row rows.Row) { h.add(item{row: row, sure: true}) }

func (h *hints) add(i item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off || h.s.stopped.Err() != nil {
		return
	}
	i.sure = i.sure || h.news[i.row.ID].sure
	h.news[i.row.ID] = i
	if !h.telling {
		h.telling = h.s.begins(h.tell)
	}
}

// tell sends what there is, and ends when there is nothing.
func (h *hints) tell() {
	for {
		h.mu.Lock()
		var items []item
		for _, i := range h.news {
			items = append(items, i)
		}
		clear(h.news)
		if len(items) == 0 {
			h.telling = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		if keys := h.changed(items); len(keys) > 0 {
			_ = h.s.read(h.s.stopped, "announce", "", func(ctx context.Context, on *conn.Session) error {
				return h.s.d.Listener.Announce(ctx, on, h.channel(), keys)
			})
		}
		retry.Sleep(h.s.stopped, gather)
	}
}

// changed returns the ids of what has changed, of which a latch that has opened is one.
func (h *hints) changed(items []item) (keys []string) {
	for _, i := range items {
		if !i.sure {
			v, err := h.s.look(h.s.stopped, i.row)
			if err != nil || !of(i.row, v).open {
				continue
			}
		}
		keys = append(keys, string(i.row.ID[:]))
	}
	return keys
}
