package shared

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// crew is the processes of one history.
type crew struct {
	s     *servertest.Scene
	mode  servertest.Mode
	table string
	n     int // of processes so far

	mu      sync.Mutex
	history []told
}

// hand is a child, and over is closed when it tells nothing any more.
type hand struct {
	*servertest.Child
	over chan struct{}
}

func (c *crew) join() hand {
	c.s.Helper()
	c.n++
	h := hand{c.s.ChildIn(c.mode, "mix", c.table, ttl), make(chan struct{})}
	go c.listen(c.n, h)
	return h
}

func (c *crew) listen(by int, h hand) {
	defer close(h.over)
	for line := h.Receive(); line != "done" && line != "(nothing more)"; line = h.Receive() {
		e := told{by: by}
		if err := json.Unmarshal([]byte(line), &e.event); err != nil {
			e.event = event{Did: "broke", Why: line}
		}
		c.mu.Lock()
		c.history = append(c.history, e)
		c.mu.Unlock()
	}
}

func (c *crew) soFar() []told {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.history)
}

// Processes that share a key and lock it are killed and stopped, at random. The data that they read
// and write in fenced transactions is that of one writer at a time, or of readers. With more time:
//
//	ROWLOCK_SHARED_SECONDS=60 scripts/with-servers postgres mariadb mysql -- \
//		go test ./internal/servertest/shared -run TestRandomHistories -v
func TestRandomHistoriesOfReadersAndWriters(t *testing.T) {
	seconds := servertest.FromEnvironment("ROWLOCK_SHARED_SECONDS", 4)
	for _, m := range []servertest.Mode{{}, {Fair: true}} {
		t.Run(m.String(), func(t *testing.T) {
			servertest.Each(t, func(s *servertest.Scene) {
				c := &crew{s: s, mode: m, table: s.Ledger()}
				s.Exec(s.Env.DB, `INSERT INTO `+c.table+` VALUES (2, 0)`)
				c.run(time.Duration(seconds) * time.Second)
				c.judge()
			})
		})
	}
}

// run has four processes work, and kills and stops one after the other.
func (c *crew) run(d time.Duration) {
	c.s.Helper()
	var all []hand
	for range 4 {
		all = append(all, c.join())
	}
	for began := time.Now(); time.Since(began) < d ||
		c.showsLittle() && time.Since(began) < 3*time.Minute; {
		c.s.Elapse(time.Duration(rand.IntN(400)) * time.Millisecond)
		switch i := rand.IntN(len(all)); rand.IntN(2) {
		case 0:
			all[i].Kill()
			<-all[i].over
			all[i] = c.join()
		case 1:
			all[i].Pause()
			c.s.Elapse(time.Duration(rand.IntN(int(2 * ttl))))
			all[i].Resume()
		}
	}
	for _, h := range all {
		_ = h.In.Close()
		servertest.Await(c.s, servertest.Patience, h.over, "a process to end")
		_ = h.Cmd.Wait()
	}
}

func (c *crew) counts() map[string]int {
	counts := map[string]int{}
	for _, e := range c.soFar() {
		if e.State != "begins" {
			counts[e.Did+" "+e.State]++
		}
	}
	return counts
}

// showsLittle reports whether a slow machine has not come far.
func (c *crew) showsLittle() bool {
	n := c.counts()
	return n["lock done"] < 5 || n["share done"] < 10 || n["downgrade done"] < 1 || n["read done"] < 10
}

// judge fails the test if the history is not that of readers and writers that exclude each other.
func (c *crew) judge() {
	s := c.s
	s.Helper()
	history := c.soFar()
	for _, e := range history {
		if e.Did == "broke" {
			s.Errorf("process %d: %s", e.by, e.Why)
		}
	}
	s.Logf("%d processes: %v", c.n, c.counts())
	if c.showsLittle() {
		s.Error("this shows nothing")
	}
	ops := operations(history, c.committed())
	if result := porcupine.CheckOperationsTimeout(sharedModel(), ops, time.Minute); result != porcupine.Ok {
		for _, op := range ops {
			s.Log(describe(op))
		}
		s.Errorf("the history is %s", result)
	}
}

// committed is what each write has written, by its ID.
func (c *crew) committed() map[int64]int64 {
	c.s.Helper()
	rows, err := c.s.Env.DB.QueryContext(c.s.Context(),
		c.s.Env.SQL(`SELECT id, n FROM `+c.table+` WHERE id > ?`), first)
	c.s.OK(err)
	defer rows.Close()
	all := map[int64]int64{}
	for rows.Next() {
		var n, id int64
		c.s.OK(rows.Scan(&n, &id))
		all[id] = n - first
	}
	c.s.OK(rows.Err())
	return all
}
