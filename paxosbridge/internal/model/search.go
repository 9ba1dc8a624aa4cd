package model

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Result is the result of an exploration.
type Result struct {
	States      int
	Transitions int
	Depth       int // steps from the first state to the last ones explored
	Complete    bool
	Elapsed     time.Duration
	// Broken are the promises that do not hold at the end of the shortest Trace; 0 if all that were
	// checked hold.
	Broken Promise
	Trace  []string
}

// Explore visits all states breadth first, on every processor, until a checked promise is broken.
// So no shorter trace breaks one. It stops at the first depth with more than limit states; 0 is no
// limit.
func (m *Model) Explore(asked Promise, limit int) (Result, error) {
	if err := m.check(); err != nil {
		return Result{}, err
	}
	begun := time.Now()
	x := &exploration{model: m, asked: asked}
	x.run(limit)
	r := x.result
	r.States, r.Elapsed = x.found.len(), time.Since(begun)
	return r, nil
}

type exploration struct {
	model  *Model
	asked  Promise
	found  visited
	levels [][]*level // by depth and worker; kept only to find stuck states
	result Result

	mu  sync.Mutex
	bad *breach
}

// frontier is the states whose steps are not explored yet.
type frontier []struct {
	id    uint32
	state packed
}

// breach is a step from a visited state to one that breaks promises.
type breach struct {
	from   uint32
	to     packed
	broken Promise
}

func (x *exploration) run(limit int) {
	first := x.model.first()
	k := x.model.pack(first)
	id, _ := x.found.add(k, noID)
	todo := frontier{{id, k}}
	for len(todo) > 0 && x.bad == nil {
		if limit > 0 && x.found.len() > limit {
			return
		}
		todo = x.deepen(todo)
		x.result.Depth++
	}
	if x.bad != nil {
		x.result.Broken = x.bad.broken
		x.result.Trace = x.trace(x.bad.from, &x.bad.to)
		return
	}
	x.result.Complete = true
	x.result.Depth--
	x.findStuck()
}

// deepen explores all steps from a frontier, and returns the next frontier.
func (x *exploration) deepen(todo frontier) (next frontier) {
	var taken atomic.Int64
	var all sync.WaitGroup
	workers := make([]*worker, runtime.GOMAXPROCS(0))
	for i := range workers {
		w := &worker{x: x, level: &level{}}
		workers[i] = w
		all.Go(func() { w.work(todo, &taken) })
	}
	all.Wait()
	var depth []*level
	for _, w := range workers {
		next = append(next, w.next...)
		x.result.Transitions += w.transitions
		depth = append(depth, w.level)
	}
	if x.asked&NobodyStuck != 0 {
		x.levels = append(x.levels, depth)
	}
	return next
}

// worker explores some states of a frontier.
type worker struct {
	x           *exploration
	at          uint32
	next        frontier
	level       *level
	transitions int
}

// portion is how many states a worker takes at once.
const portion = 256

func (w *worker) work(todo frontier, taken *atomic.Int64) {
	yield := w.reach
	for {
		from := int(taken.Add(portion)) - portion
		if from >= len(todo) {
			return
		}
		for _, f := range todo[from:min(from+portion, len(todo))] {
			w.at = f.id
			s := w.x.model.unpack(f.state)
			grants := w.x.model.steps(&s, yield)
			if w.x.asked&NobodyStuck != 0 {
				w.level.leave(f.id, grants)
			}
		}
	}
}

// reach is called with each state that a step leads to.
func (w *worker) reach(s *state, _ step) {
	w.transitions++
	k := w.x.model.pack(*s)
	if b := s.broken & w.x.asked; b != 0 {
		w.x.report(w.at, k, b)
		return
	}
	id, fresh := w.x.found.add(k, w.at)
	if w.x.asked&NobodyStuck != 0 {
		w.level.lead(id)
	}
	if !fresh {
		return
	}
	if b := w.x.model.breaks(s) & w.x.asked; b != 0 {
		w.x.report(w.at, k, b)
		return
	}
	w.next = append(w.next, struct {
		id    uint32
		state packed
	}{id, k})
}

// report keeps one breach of a depth, the same in every run.
func (x *exploration) report(from uint32, to packed, broken Promise) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.bad == nil || to[0] < x.bad.to[0] || to[0] == x.bad.to[0] && to[1] < x.bad.to[1] {
		x.bad = &breach{from, to, broken}
	}
}

// trace describes the steps to a visited state, and from there to another.
func (x *exploration) trace(id uint32, to *packed) (lines []string) {
	var path []packed
	if to != nil {
		path = append(path, *to)
	}
	for ; id != noID; id = x.found.parent(id) {
		path = append(path, x.found.state(id))
	}
	for i := len(path) - 1; i > 0; i-- {
		lines = append(lines, x.model.line(path[i], path[i-1]))
	}
	return lines
}

// line describes a step from one state to another.
func (m *Model) line(from, to packed) (text string) {
	s := m.unpack(from)
	m.steps(&s, func(n *state, by step) {
		if text == "" && m.pack(*n) == to {
			text = m.text(by) + "\n        " + n.String()
		}
	})
	return text
}
