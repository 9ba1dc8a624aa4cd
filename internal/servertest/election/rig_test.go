package election

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// slack is how much later than its bound something may happen on a machine that does much else. The
// log has the times.
const slack = 5 * time.Second

// modes are those that differ in how a candidate waits.
var modes = []servertest.Mode{{}, {Fair: true}}

// eachMode runs f on every database, the databases side by side.
func eachMode(t *testing.T, f func(s *servertest.Scene, m servertest.Mode)) {
	t.Helper()
	servertest.Each(t, func(s *servertest.Scene) {
		for _, m := range modes {
			s.Part(m.String(), func(s *servertest.Scene) { f(s, m) })
		}
	})
}

// house is the candidates of one election, each a process.
type house struct {
	s      *servertest.Scene
	mode   servertest.Mode
	ttl    time.Duration
	table  string
	events chan told
	n      int    // of candidates so far
	before []told // events that no await has wanted yet

	mu      sync.Mutex
	history []told
}

// told is an event and which candidate has told it.
type told struct {
	by *candidate
	event
}

// candidate is a child.
type candidate struct {
	*servertest.Child
	id   int
	over chan struct{} // closed when it tells nothing any more
}

// open makes a house without candidates, with a ledger that is at 0.
func open(s *servertest.Scene, m servertest.Mode, ttl time.Duration) *house {
	s.Helper()
	return &house{
		s: s, mode: m, ttl: ttl, table: s.Ledger(), events: make(chan told, 100_000),
	}
}

// candidate starts one, and returns when it stands.
func (h *house) candidate(job string) *candidate {
	h.s.Helper()
	h.n++
	c := &candidate{h.s.ChildIn(h.mode, job, h.table, h.ttl), h.n, make(chan struct{})}
	go h.listen(c)
	h.await("a candidate to stand", func(e told) bool { return e.by == c && e.Did == "stands" })
	return c
}

func (h *house) listen(c *candidate) {
	defer close(c.over)
	for line := c.Receive(); line != "done" && line != "(nothing more)"; line = c.Receive() {
		e := told{by: c}
		if err := json.Unmarshal([]byte(line), &e.event); err != nil {
			e.event = event{Did: "broke", Why: line}
		}
		h.mu.Lock()
		h.history = append(h.history, e)
		h.mu.Unlock()
		h.events <- e
	}
}

// await returns the first event that is wanted and was not returned before. Others may come all the
// time: a leader tells of each write.
func (h *house) await(what string, wanted func(told) bool) told {
	h.s.Helper()
	late := time.Now().Add(servertest.Patience)
	for i := 0; ; i++ {
		if i == len(h.before) {
			e := servertest.Await(h.s, time.Until(late), h.events, what)
			h.before = append(h.before, e)
		}
		if e := h.before[i]; wanted(e) {
			h.before = slices.Delete(h.before, i, i+1)
			return e
		}
	}
}

// leader awaits the next term.
func (h *house) leader() told {
	h.s.Helper()
	return h.await("a leader", func(e told) bool { return e.Did == "leads" })
}

// of awaits what a candidate tells.
func (h *house) of(c *candidate, did string) told {
	h.s.Helper()
	return h.await(did, func(e told) bool { return e.by == c && e.Did == did })
}

// soFar returns all that was told.
func (h *house) soFar() []told {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.history)
}

// close ends the candidates that are left.
func (h *house) close(candidates ...*candidate) {
	h.s.Helper()
	for _, c := range candidates {
		_ = c.In.Close()
		servertest.Await(h.s, servertest.Patience, c.over, "a candidate to end")
		_ = c.Cmd.Wait()
	}
}

// spread describes times in one line.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	at := func(p int) time.Duration {
		return all[min(len(all)*p/100, len(all)-1)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("n=%d min %s, p50 %s, p90 %s, p99 %s, max %s",
		len(all), at(0), at(50), at(90), at(99), at(100))
}
