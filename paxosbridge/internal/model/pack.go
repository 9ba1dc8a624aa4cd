package model

// packed is a state in two words. The first has the servers and the network. The second has the
// processes and, above two of these, the extensions.
type packed [2]uint64

// writer and reader put numbers side by side, the first one lowest.
type (
	writer struct {
		word uint64
		at   uint8
	}
	reader struct{ word uint64 }
)

func (w *writer) put(v, bits uint8) {
	w.word |= uint64(v) << w.at
	w.at += bits
}

func (w *writer) flag(b bool) {
	if b {
		w.word |= 1 << w.at
	}
	w.at++
}

func (w *writer) token(t token) {
	w.put(t.epoch, 3)
	w.put(t.count, 2)
}

func (r *reader) get(bits uint8) uint8 {
	v := uint8(r.word & (1<<bits - 1))
	r.word >>= bits
	return v
}

func (r *reader) flag() bool { return r.get(1) == 1 }

func (r *reader) token() token { return token{r.get(3), r.get(2)} }

func (w *writer) row(r row) {
	w.flag(r.exists)
	w.put(r.placement, 2)
	w.token(r.token)
	w.put(r.owner, 3)
	w.flag(r.expired)
}

func (r *reader) row() row {
	return row{
		exists: r.flag(), placement: r.get(2), token: r.token(), owner: r.get(3), expired: r.flag(),
	}
}

func (w *writer) request(q request) {
	w.put(q.verb, 4)
	w.put(q.from, 2)
	w.put(q.epoch, 3)
	w.put(q.count, 2)
	w.flag(q.awaited)
}

func (r *reader) request() request {
	return request{
		verb: r.get(4), from: r.get(2), epoch: r.get(3), count: r.get(2), awaited: r.flag(),
	}
}

func (w *writer) process(p *process) {
	w.put(p.phase, 2)
	w.put(p.route, 1)
	w.put(p.epoch, 3)
	w.put(p.count, 2)
	w.put(p.next, 4)
	w.flag(p.live)
	w.flag(p.valid)
}

func (r *reader) process() process {
	return process{
		phase: r.get(2), route: r.get(1), epoch: r.get(3), count: r.get(2), next: r.get(4),
		live: r.flag(), valid: r.flag(),
	}
}

// inOrder sorts the requests in flight, because their order means nothing.
func (s *state) inOrder() {
	var a, b writer
	a.request(s.net[0])
	b.request(s.net[1])
	if a.word > b.word {
		s.net[0], s.net[1] = s.net[1], s.net[0]
	}
}

// pack settles its copy of s first: states that behave alike are one.
func (m *Model) pack(s state) packed {
	s.inOrder()
	for i := range m.processes() {
		s.p[i].settle()
	}
	var lo, hi writer
	lo.row(s.db.row)
	lo.token(s.db.floor)
	lo.put(s.record.phase, 2)
	lo.token(s.record.token)
	lo.put(s.record.owner, 3)
	lo.token(s.last[0])
	lo.token(s.last[1])
	lo.put(s.duplicates, 2)
	lo.request(s.net[0])
	lo.request(s.net[1])
	hi.process(&s.p[0])
	hi.process(&s.p[1])
	if m.processes() > 2 {
		hi.process(&s.p[2])
		hi.process(&s.p[3])
	} else {
		hi.extensions(&s)
	}
	return packed{lo.word, hi.word}
}

func (w *writer) extensions(s *state) {
	w.token(s.db.fenced)
	w.row(s.replica.row)
	w.token(s.replica.floor)
	w.token(s.replica.fenced)
	w.flag(s.failedOver)
	w.flag(s.doubt)
	w.flag(s.taken)
	w.flag(s.lost)
}

func (m *Model) unpack(k packed) state {
	lo, hi := reader{k[0]}, reader{k[1]}
	var s state
	s.db.row = lo.row()
	s.db.floor = lo.token()
	s.record.phase = lo.get(2)
	s.record.token = lo.token()
	s.record.owner = lo.get(3)
	s.last = [2]token{lo.token(), lo.token()}
	s.duplicates = lo.get(2)
	s.net = [inFlight]request{lo.request(), lo.request()}
	s.p[0], s.p[1] = hi.process(), hi.process()
	if m.processes() > 2 {
		s.p[2], s.p[3] = hi.process(), hi.process()
	} else {
		s.db.fenced = hi.token()
		s.replica = database{hi.row(), hi.token(), hi.token()}
		s.failedOver, s.doubt, s.taken, s.lost = hi.flag(), hi.flag(), hi.flag(), hi.flag()
	}
	return s
}
