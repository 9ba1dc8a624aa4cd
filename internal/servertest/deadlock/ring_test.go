package deadlock

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// apart is how long after each other the calls of a ring begin: long enough to tell by the
// database's clock who began last.
const apart = 200 * time.Millisecond

// process is a child with an ear.
type process struct {
	*servertest.Child
	s *servertest.Scene
}

// processes starts three children, whose events are told apart by their chains.
func processes(s *servertest.Scene, m servertest.Mode, ttl time.Duration) []*process {
	s.Helper()
	var all []*process
	for range 3 {
		p := &process{Child: s.ChildIn(m, "chains", "none", ttl), s: s}
		all = append(all, p)
	}
	return all
}

// crowd has the events of three processes, for rings side by side.
type crowd struct {
	s         *servertest.Scene
	processes []*process
	pulse     *servertest.Pulse
	rings     map[string]*ring // by the first word of a chain's name
}

// ring has n chains, of which each holds a key and waits for the next one's.
type ring struct {
	crowd  *crowd
	name   string
	n      int
	all    bool // with LockAll
	events chan event
	held   []event // by chain
	victim int     // the chain that was ended
	paused []int   // chains whose processes have stood still
}

// gather starts the processes and rings of 2, 3 and so on chains.
func gather(s *servertest.Scene, m servertest.Mode, ttl time.Duration, rings ...*ring) *crowd {
	s.Helper()
	c := &crowd{s: s, processes: processes(s, m, ttl), rings: make(map[string]*ring)}
	c.pulse = s.Pulse()
	for _, r := range rings {
		r.crowd, r.events = c, make(chan event, 100)
		c.rings[r.name] = r
	}
	for _, p := range c.processes {
		go c.hear(p)
	}
	return c
}

// hear passes events on until the process has ended.
func (c *crowd) hear(p *process) {
	for {
		var e event
		if json.Unmarshal([]byte(p.Receive()), &e) != nil {
			return
		}
		for _, r := range c.rings {
			if r.has(e.Chain) {
				r.events <- e
			}
		}
	}
}

func (r *ring) chain(i int) string { return fmt.Sprintf("%s %d", r.name, i) }

func (r *ring) has(chain string) bool {
	for i := range r.n {
		if r.chain(i) == chain {
			return true
		}
	}
	return false
}

func (r *ring) key(i int) string { return fmt.Sprintf("%s/%02d", r.name, i%r.n) }

// process is where a chain runs.
func (r *ring) process(i int) *process {
	return r.crowd.processes[i%len(r.crowd.processes)]
}

func (r *ring) send(i int, do string, keys ...string) {
	text, err := json.Marshal(order{do, r.chain(i), keys})
	r.crowd.s.OK(err)
	r.process(i).Send(string(text))
}

// next is the ring's next event.
func (r *ring) next(what string) event {
	r.crowd.s.Helper()
	return servertest.Await(r.crowd.s, servertest.Patience, r.events, what)
}

// hold has each chain take its key.
func (r *ring) hold() {
	s := r.crowd.s
	s.Helper()
	r.held = make([]event, r.n)
	for i := range r.n {
		r.send(i, "hold", r.key(i))
	}
	for range r.n {
		e := r.next("the first locks")
		if e.Did != "held" {
			s.Fatalf("%s: %s", e.Chain, e.Did)
		}
		r.held[r.number(e)] = e
	}
}

func (r *ring) number(e event) (i int) {
	for i = range r.n {
		if r.chain(i) == e.Chain {
			return i
		}
	}
	return -1
}

// waitOne has a chain wait for the key of the next.
func (r *ring) waitOne(i int) {
	if r.all {
		r.send(i, "together", "a free key of "+r.chain(i), r.key(i+1))
		return
	}
	r.send(i, "wait", r.key(i+1))
}

// wait has one after the other wait.
func (r *ring) wait() {
	for i := range r.n {
		if i > 0 {
			r.crowd.s.Elapse(apart)
		}
		r.waitOne(i)
	}
}

// wantTold wants an event to be the end of the ring, and returns the chain that was told. That is
// the one that began last, unless the database was later than the calls are apart: its clock tells
// who began last, when it has the record. That of a process which stood still may be late, too.
func (r *ring) wantTold(e event) (victim int) {
	s := r.crowd.s
	s.Helper()
	victim = r.number(e)
	ranked := r.crowd.pulse.Longest() < apart
	if !ranked {
		s.Logf("%s: the order is unknown, a pair took %s", r.name, r.crowd.pulse.Longest())
	}
	ranked = ranked && !slices.Contains(r.paused, victim)
	if e.Did != "deadlock" || ranked && victim != r.n-1 {
		s.Fatalf("the first to end is %s with %q", e.Chain, e.Did)
	}
	if len(e.Cycle) != r.n {
		s.Errorf("%s: a cycle of %d is told as %q", r.name, r.n, e.Cycle)
		return victim
	}
	for i, key := range e.Cycle {
		at := (victim + 1 + i) % r.n // a chain waits for the key of the next
		token := r.held[at].Tokens[key]
		if key != r.key(at) || token != e.Tokens[key] || token == 0 {
			s.Errorf("%s: the cycle has %q with token %d where %q with %d is", r.name, key,
				e.Tokens[key], r.key(at), r.held[at].Tokens[r.key(at)])
		}
	}
	return victim
}

// wantSoon wants something to have taken no longer than the bound.
func (r *ring) wantSoon(took, bound time.Duration, what string) {
	s := r.crowd.s
	s.Helper()
	took = took.Round(time.Millisecond)
	if most := r.crowd.pulse.Allow(bound); took > most {
		s.Errorf("%s %s, want at most %s", what, took, most)
		return
	}
	s.Logf("%s %s", what, took)
}

// wantUntouched wants every key still to be held with the token that it was taken with.
func (r *ring) wantUntouched() {
	s := r.crowd.s
	s.Helper()
	for i, e := range r.held {
		key := r.key(i)
		token := s.Number(`SELECT token FROM {rowlock}
			WHERE {key} = ? AND owner IS NOT NULL AND expires_at > {now}`, []byte(key))
		if token != int64(e.Tokens[key]) {
			s.Errorf("%q has token %d, and was taken with %d", key, token, e.Tokens[key])
		}
	}
}

// dissolve unlocks what a chain has, and then what each has that was granted its key.
func (r *ring) dissolve(victim int) {
	s := r.crowd.s
	s.Helper()
	r.send(victim, "unlock")
	for left := 2*r.n - 1; left > 0; left-- { // all but one are granted, all unlock
		e := r.next("the others to go on")
		switch e.Did {
		case "granted":
			if e.Lost {
				s.Errorf("%s has lost its lock", e.Chain)
			}
			r.send(r.number(e), "unlock")
		case "unlocked":
		default:
			s.Fatalf("%s: %s", e.Chain, e.Did)
		}
	}
}

// records counts the rows of waits.
func records(s *servertest.Scene) int64 {
	s.Helper()
	return s.Number(`SELECT count(*) FROM {rowlock_wait}`)
}
