package lane

import "time"

const (
	// crowd is how many ops must run and wait before any is held back: two or three run sooner side
	// by side than one after the other.
	crowd = 4
	// overdue is how long ops are held back at most. A batch takes a tenth of it, unless its lane
	// hangs.
	overdue = 5 * time.Millisecond
)

// shut reports whether the lanes that are idle leave what is pending to those that are busy. If
// each lane began at once, each batch would be small, and a server needs as much for a small batch
// as for a large one. If each waited for the other, no statement would run while a batch is
// committed. So a second lane starts once half of all operations are queued: two lanes alternate,
// and each gathers while the other commits. What a lane runs alone may take long and nothing waits
// for it, nor for the keeper, which takes no acquires. Renewals wait for nothing, nor does what is
// to run alone.
func (s *Set[T]) shut() bool {
	if s.cfg.Gate == 0 || s.closed || s.alone > 0 || len(s.pending[Renew]) > 0 {
		return false
	}
	waiting := len(s.pending[Release]) + len(s.pending[Acquire])
	busy, running := 0, 0
	for _, l := range s.lanes {
		if l.merges && !l.keeper {
			busy++
			running += l.running
		}
	}
	all := waiting + running
	share := min(s.cfg.Gate, (all+1)/2)
	return busy > 0 && all >= crowd && waiting < share*busy
}

// holdBack sees to it that what is pending is not held back for longer than overdue.
func (s *Set[T]) holdBack() {
	if s.timed {
		return
	}
	s.timed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(overdue, s.letGo)
		return
	}
	s.timer.Reset(overdue)
}

// letGo has an idle lane begin. Nothing waits again for the lanes that are busy now: one of them
// may hang until its timeout.
func (s *Set[T]) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timed = false
	if len(s.pending[Release])+len(s.pending[Acquire]) > 0 {
		for _, l := range s.lanes {
			l.merges = false
		}
		s.wakeForRest()
	}
}

// begins notes what a lane takes, and ends that it has run it. Both need the set's mutex.
func (l *lane[T]) begins(alone bool, ops int) {
	l.busy, l.running, l.merges = true, ops, !alone
}

func (l *lane[T]) ends() {
	l.turns++
	l.busy, l.merges, l.running = false, false, 0
	l.set.turned.Broadcast()
}
