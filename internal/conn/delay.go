package conn

import "time"

// The batching delay.
const (
	// leastDelayed is how many ops must run and wait before any is delayed: two or three run sooner
	// side by side than one after the other.
	leastDelayed = 4
	// longestDelay bounds it. A batch takes a tenth of it, unless its connection hangs.
	longestDelay = 5 * time.Millisecond
)

// delays reports whether idle connections leave what is pending to the busy ones. If each began at
// once, each batch would be small, and a server needs as much for a small batch as for a large one.
// If each waited for the other, no statement would run while a batch is committed. So a second
// connection starts once half of all operations are queued: two connections alternate, and each
// gathers while the other commits. What a connection runs alone may take long and nothing waits for
// it, nor for the keeper, which takes no acquires. Renewals are never delayed, nor is what runs
// alone.
func (s *Set[T]) delays() bool {
	if s.cfg.Gather == 0 || s.closed || s.alone > 0 || len(s.pending[Renew]) > 0 {
		return false
	}
	waiting := len(s.pending[Release]) + len(s.pending[Acquire])
	busy, running := 0, 0
	for _, p := range s.conns {
		if p.merges && !p.keeper {
			busy++
			running += p.running
		}
	}
	all := waiting + running
	share := min(s.cfg.Gather, (all+1)/2)
	return busy > 0 && all >= leastDelayed && waiting < share*busy
}

// startTimer bounds the delay of what is pending by longestDelay.
func (s *Set[T]) startTimer() {
	if s.timed {
		return
	}
	s.timed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(longestDelay, s.endDelay)
		return
	}
	s.timer.Reset(longestDelay)
}

// endDelay has an idle connection begin. Nothing waits again for the connections that are busy now:
// one of them may hang until its timeout.
func (s *Set[T]) endDelay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timed = false
	if len(s.pending[Release])+len(s.pending[Acquire]) > 0 {
		for _, p := range s.conns {
			p.merges = false
		}
		s.wakeForRest()
	}
}

// ends notes that a connection has run what it took. It needs the set's mutex.
func (p *pinned[T]) ends() {
	p.runs++
	p.busy, p.merges, p.running = false, false, 0
	p.set.ended.Broadcast()
}
