package model

// Phases of a process.
const (
	idle uint8 = iota
	waiting
	holding
)

// process is a client, or a mover, which acquires as clients do and then moves the key. It may stop
// and restart at every step.
type process struct {
	phase uint8
	// Where it believes the key's placement: atTable or atCluster. Only a belief, because a store
	// refuses a wrong one.
	route uint8
	// Of its lease, or else the one in which the row has said that the key is in the cluster.
	epoch uint8
	count uint8 // of its lease
	next  uint8 // the next request of a move that is half done; 0: it acquires
	// It works: it holds, and its own deadline has not passed. A server's lease never ends before
	// that.
	live bool
	// A read of the row has confirmed route and epoch, and still counts; only with Forced.
	valid bool
}

func (p *process) token() token { return token{p.epoch, p.count} }

// lose ends the belief in a lease that has expired.
func (p *process) lose(placement uint8, t token) {
	if p.route == placement && p.token() == t {
		p.live = false
	}
}

// stop is a crash, or a call that was given up: what was begun is not continued. A cache may keep
// the key's placement.
func (p *process) stop() {
	p.phase, p.next, p.live = idle, none, false
	p.settle()
}

// settle clears fields that no longer matter, so that states that behave alike are one.
func (p *process) settle() {
	if p.phase != holding && p.next != depart && p.next != openAhead {
		p.count = 0
	}
	if p.route == atTable && p.count == 0 {
		p.epoch, p.valid = 0, false
	}
}

func (p *process) turnTo(placement, epoch uint8) {
	p.route, p.epoch, p.valid = placement, epoch, placement == atCluster
}

// hear is what a process does with the answer to its request.
func (m *Model) hear(s *state, q request, a reply) {
	p := &s.p[q.from]
	p.phase, p.next = idle, none
	switch q.verb {
	case acquireTable, acquireCluster:
		m.hearGrant(p, q, a)
	case depart:
		if a.says == done {
			p.turnTo(atCluster, a.token.epoch)
			p.next = openUp
		}
	case openAhead:
		p.next = depart
	case seal:
		if a.says == done {
			p.next = handBack
		}
	case handBack:
		if a.says == done {
			p.turnTo(atTable, 0)
		} else {
			p.next = read
		}
	case read:
		if a.says == moved {
			p.turnTo(atCluster, a.token.epoch)
		} else {
			p.turnTo(atTable, 0)
		}
	}
	if !m.Forced {
		p.valid = false
	}
}

// hearGrant is what a refused process does: it follows the key, or completes a move that is half
// done.
func (m *Model) hearGrant(p *process, q request, a reply) {
	switch a.says {
	case granted:
		m.hold(p, q, a.token)
	case moved:
		p.turnTo(atCluster, a.token.epoch)
	case older:
		if !m.lacks(nohelpopen) {
			p.next = openUp
		}
	case closed:
		if !m.lacks(nohelpreturn) {
			p.next = handBack
		}
	case newer:
		p.next = read
	}
}

// hold begins a client's work, or a mover's move. Until the mover asks for its first step, it
// counts as working.
func (m *Model) hold(p *process, q request, t token) {
	table := q.verb == acquireTable
	p.phase, p.epoch, p.count = holding, t.epoch, t.count
	p.live = table || !m.Forced || p.valid || m.lacks(novalidate)
	switch {
	case q.from < m.Clients:
		p.next = verbAt(p.route, releaseTable, releaseCluster)
	case table && m.lacks(openfirst):
		p.next = openAhead
	case table:
		p.next = depart
	case m.lacks(retbeforeseal):
		p.next = handBack
	default:
		p.next = seal
	}
}

// processAlone is what a process does without an answer.
func (m *Model) processAlone(s *state, i uint8, yield func(*state, step)) {
	switch p := &s.p[i]; {
	case p.phase == waiting:
		n := *s
		n.abandon(i)
		yield(&n, step{what: givesUp, actor: i})
	case p.next != none:
		m.ask(s, i, p.next, yield)
		m.crash(s, i, yield)
		m.fencedWrite(s, i, yield)
	default:
		m.ask(s, i, verbAt(p.route, acquireTable, acquireCluster), yield)
		if p.route != atTable {
			n := *s
			n.p[i] = process{}
			yield(&n, step{what: forgets, actor: i})
		}
	}
}

func verbAt(placement, table, cluster uint8) uint8 {
	if placement == atTable {
		return table
	}
	return cluster
}

// ask sends a request, if there is room in flight. A process that asks for a release has stopped
// working before.
func (m *Model) ask(s *state, i, verb uint8, yield func(*state, step)) {
	p := &s.p[i]
	q := request{verb: verb, from: i, epoch: p.epoch, count: p.count, awaited: true}
	if verb == openAhead {
		q.epoch++
	}
	n := *s
	if !n.send(q) {
		return
	}
	to := &n.p[i]
	to.phase, to.live = waiting, false
	if verb != openAhead {
		to.next = none
	}
	yield(&n, step{what: asks, actor: i, request: q})
}

func (m *Model) crash(s *state, i uint8, yield func(*state, step)) {
	n := *s
	n.p[i].stop()
	yield(&n, step{what: crashes, actor: i})
}

// fencedWrite is a write under the lease that a process has, or believes to have.
func (m *Model) fencedWrite(s *state, i uint8, yield func(*state, step)) {
	p := &s.p[i]
	if !m.Fences || p.phase != holding || !s.db.passes(p, i+1) {
		return
	}
	n := *s
	if p.token().less(n.db.fenced) {
		n.broken |= FencedInOrder
	}
	n.db.fenced = p.token()
	if p.route == atCluster {
		n.db.row.token = p.token()
	}
	m.replicate(&n, write)
	yield(&n, step{what: writes, actor: i})
}
