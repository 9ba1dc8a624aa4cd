package cycle

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// suspicious is for how long a call has waited, and a lock was held, to be told of.
	suspicious = 5 * time.Second
	// mostEdges and mostChains bound one reading. MySQL and MariaDB end a recursion after 1,000 steps.
	mostEdges, mostChains = 4096, 900
	// mostLocks is how many locks, and how many awaited keys, a process records of itself: the oldest.
	mostLocks = 256
)

// Held is a lock of this client.
type Held struct {
	lease.Lease
	Since time.Time
	// Taken returns the call stack that took it, if that is known.
	Taken func() string
}

// doubts are what was told, so that it is told once.
type doubts struct {
	told map[string]bool
	last time.Time
	mine lease.Caller // the process's, as recorded
}

// suspect tells of calls that wait for what their own client holds, and of processes that hold and
// wait in a ring. Contexts say nothing of them, so that nothing is ended.
func (w *Watch) suspect(ctx context.Context, long []*Call) {
	if len(long) == 0 { // the loop may end with this round
		w.forget(ctx)
		return
	}
	if time.Since(w.found.doubt.last) < suspicious/2 {
		return
	}
	w.found.doubt.last = time.Now()
	old := slices.DeleteFunc(w.Mine(), func(h Held) bool { return time.Since(h.Since) < suspicious })
	slices.SortFunc(old, func(a, b Held) int { return a.Since.Compare(b.Since) })
	slices.SortFunc(long, func(a, b *Call) int { return a.Since.Compare(b.Since) })
	if len(old) == 0 {
		w.forget(ctx)
		return
	}
	w.ownKeys(old, long)
	if w.records() {
		w.ring(ctx, old, long)
	}
}

// ownKeys tells of calls whose key this client has held for as long as they have waited.
func (w *Watch) ownKeys(old []Held, long []*Call) {
	by := make(map[string]Held, len(old))
	for _, h := range old {
		by[h.Key] = h
	}
	for _, c := range long {
		for _, key := range c.Wants {
			if h, ok := by[key]; ok {
				wait := lease.Link{
					Key: key, Token: h.Token, Identity: w.Identity, Waited: time.Since(c.Since),
				}
				w.tell([]lease.Link{wait}, old)
			}
		}
	}
}

// ring records what the process holds and waits for, and tells of a ring that it is part of.
func (w *Watch) ring(ctx context.Context, old []Held, long []*Call) {
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	w.forget(ctx)
	mine := lease.Caller{ID: lease.NewOwner(), Each: make(map[string]time.Duration)}
	for _, h := range old[:min(len(old), mostLocks)] {
		mine.Holds = append(mine.Holds, h.Lease)
	}
	for _, c := range long {
		mine.Wants = append(mine.Wants, c.Wants...)
		mine.Shares = append(mine.Shares, c.Shares...)
		for _, key := range slices.Concat(c.Wants, c.Shares) {
			mine.Each[key] = max(mine.Each[key], time.Since(c.Since))
		}
	}
	mine.Wants = mine.Wants[:min(len(mine.Wants), mostLocks)]
	mine.Shares = mine.Shares[:min(len(mine.Shares), mostLocks)]
	by := lease.Party{Identity: w.Identity, Process: true}
	w.found.doubt.mine = mine
	if w.failed("record", w.Graph.Record(ctx, by, []lease.Caller{mine}, 2*suspicious)) {
		return
	}
	edges, err := w.Graph.Edges(ctx, by, []lease.Owner{mine.ID}, mostEdges)
	if w.failed("read", err) {
		return
	}
	edges = slices.DeleteFunc(edges, func(e lease.Edge) bool { return e.From == e.To })
	g, _ := reading(edges, nil)
	if cycle := g.through(mine.ID, func(lease.Owner) bool { return true }); cycle != nil {
		w.tell(links(cycle), old)
	}
}

// recordedSelf reports whether the store may have a record of the process.
func (w *Watch) recordedSelf() bool { return !w.found.doubt.mine.ID.IsZero() }

// forget erases the process's record.
func (w *Watch) forget(ctx context.Context) {
	if !w.recordedSelf() {
		return
	}
	w.mu.Lock()
	w.spent.chains = append(w.spent.chains, w.found.doubt.mine)
	w.mu.Unlock()
	w.found.doubt.mine = lease.Caller{}
	w.clear(ctx)
}

// tell logs a suspicion and calls the hook, once for the same locks.
func (w *Watch) tell(waits []lease.Link, mine []Held) {
	name := identify(waits)
	if w.found.doubt.told[name] {
		return
	}
	if len(w.found.doubt.told) > 1000 || w.found.doubt.told == nil {
		w.found.doubt.told = make(map[string]bool)
	}
	w.found.doubt.told[name] = true
	s := lease.Suspicion{Waits: waits}
	for _, h := range mine {
		ours := func(l lease.Link) bool { return l.Key == h.Key && l.Token == h.Token }
		if !slices.ContainsFunc(waits, ours) {
			continue
		}
		if taken := h.Taken(); taken != "" {
			s.Taken = append(s.Taken, taken)
		}
	}
	w.Log.LogAttrs(context.Background(), slog.LevelWarn, "rowlock: a wait may never end",
		slog.String("waits", describe(waits)), slog.Any("taken", s.Taken))
	if w.Suspect != nil {
		w.Suspect(context.Background(), s)
	}
}

// identify is the same for the same locks, whichever process of a ring comes first.
func identify(waits []lease.Link) string {
	var locks []string
	for _, l := range waits {
		locks = append(locks, fmt.Sprintf("%q %d", l.Key, l.Token))
	}
	slices.Sort(locks)
	return strings.Join(locks, " ")
}

func describe(waits []lease.Link) string {
	text := make([]string, len(waits))
	for i, l := range waits {
		text[i] = fmt.Sprintf("%q has waited %s for %q, held with token %d by %q", l.Identity,
			l.Waited.Round(time.Millisecond), l.Key, l.Token, waits[(i+1)%len(waits)].Identity)
	}
	return strings.Join(text, "; ")
}

// tooMany says that there may be cycles that were not found.
func (w *Watch) tooMany(edges, chains int) {
	if w.note("rowlock: too many calls wait for each other to look for a deadlock among all of them",
		slog.Int("edges", edges), slog.Int("chains", chains)) && w.Suspect != nil {
		w.Suspect(context.Background(), lease.Suspicion{Incomplete: true})
	}
}
