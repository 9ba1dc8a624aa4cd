package model

// The verbs of requests. Those after none are written 4 bits wide.
const (
	none uint8 = iota
	acquireTable
	acquireCluster
	releaseTable
	releaseCluster
	depart
	openUp
	openAhead // openUp before the row has left
	seal
	handBack
	read
	recall
	write // no message has these two
	reap
)

// request is a message in flight. It may arrive late, never, or twice: a driver that repeats it
// does not ask.
type request struct {
	verb, from   uint8
	epoch, count uint8
	awaited      bool // its sender still waits for the answer to this request
}

func (q request) token() token { return token{q.epoch, q.count} }

// The kinds of answers.
const (
	refused uint8 = iota
	done
	granted
	moved  // the row: the key is in the cluster, in token's epoch
	older  // the record: it is not open in this epoch yet
	newer  // the record: that epoch is past
	closed // the record: that epoch is sealed
	beyond // beyond the model's bounds: the request gets no answer
)

type reply struct {
	says  uint8
	token token
}

// send puts q in flight, if there is room.
func (s *state) send(q request) bool {
	for i := range s.net {
		if s.net[i].verb == none {
			s.net[i] = q
			return true
		}
	}
	return false
}

// abandon leaves the request of process i in flight, and its answer is ignored.
func (s *state) abandon(i uint8) {
	for k := range s.net {
		if q := &s.net[k]; q.verb != none && q.from == i {
			q.awaited = false
		}
	}
	s.p[i].stop()
}

// serve is what the table and the cluster do with a request.
func (m *Model) serve(s *state, q request) reply {
	switch q.verb {
	case acquireCluster:
		return m.acquireRecord(s, q)
	case releaseCluster:
		return m.releaseRecord(s, q)
	case openUp, openAhead:
		return m.openRecord(s, q)
	case seal:
		return m.sealRecord(s, q)
	case read:
		return m.readRow(s)
	}
	a := m.serveRow(s, q)
	m.replicate(s, q.verb)
	return a
}

func (m *Model) serveRow(s *state, q request) reply {
	switch q.verb {
	case acquireTable:
		return m.acquireRow(s, q)
	case releaseTable:
		return m.releaseRow(s, q)
	case depart:
		return m.depart(s, q)
	case handBack:
		return m.giveBack(s, q)
	case recall:
		return m.recall(s, q)
	}
	panic("model: no server for this verb")
}

// networkDoes is everything that can happen to the requests in flight. It reports whether a step
// grants a client the key, or would but for the bounds.
func (m *Model) networkDoes(s *state, yield func(*state, step)) (grants bool) {
	for k, q := range s.net {
		if q.verb == none {
			continue
		}
		n := *s
		a := m.serve(&n, q)
		if a.says != beyond {
			m.arrives(&n, k, a, yield)
		}
		grants = grants || q.from < m.Clients && a.says == granted ||
			a.says == beyond && q.verb != depart
		m.vanishes(s, k, yield)
	}
	return grants
}

// arrives continues after a request was served: it is answered, or its answer is lost, and it may
// arrive a second time.
func (m *Model) arrives(served *state, k int, a reply, yield func(*state, step)) {
	q := served.net[k]
	n := *served
	n.net[k] = request{}
	if q.awaited {
		m.hear(&n, q, a)
	}
	yield(&n, step{what: arrives, request: q, reply: a})
	if n.duplicates < m.Duplicates {
		n.duplicates++
		n.net[k] = q
		n.net[k].awaited = false
		yield(&n, step{what: arrivesStays, request: q, reply: a})
	}
	if q.awaited {
		n = *served
		n.net[k] = request{}
		n.p[q.from].stop()
		yield(&n, step{what: answerLost, request: q, reply: a})
	}
}

func (m *Model) vanishes(s *state, k int, yield func(*state, step)) {
	n := *s
	q := n.net[k]
	n.net[k] = request{}
	if q.awaited {
		n.p[q.from].stop()
	}
	yield(&n, step{what: vanishes, request: q})
}
