package model

// Phases of a cluster's record.
const (
	absent uint8 = iota
	open
	sealed
)

// record is what the cluster remembers of the key. Its transactions are conditional on all of it.
type record struct {
	phase uint8
	token token // of the last grant; count 0: none in this epoch
	owner uint8 // 1 + the process; 0: no owner, as after an expiry
}

func (r *record) heldWith(q request) bool { return r.owner == q.from+1 && r.token.count == q.count }

func (r *record) older(epoch uint8) bool { return r.phase == absent || r.token.epoch < epoch }

// acquireRecord grants in the epoch that the request names only.
func (m *Model) acquireRecord(s *state, q request) reply {
	r := &s.record
	switch {
	case r.phase == absent:
		return reply{says: older}
	case r.token.epoch < q.epoch && !m.lacks(acquireepoch):
		return reply{says: older}
	case r.token.epoch > q.epoch && !m.lacks(acquireepoch):
		return reply{says: newer}
	case r.phase == sealed && !m.lacks(acquiresealed):
		return reply{says: closed}
	case r.owner != 0:
		return reply{says: refused}
	case r.token.count == m.Grants:
		return reply{says: beyond}
	}
	r.token.count++
	r.owner = q.from + 1
	m.granted(s, atCluster, r.token)
	return reply{granted, r.token}
}

func (m *Model) releaseRecord(s *state, q request) reply {
	if r := &s.record; r.phase == open && r.token.epoch == q.epoch && r.heldWith(q) {
		r.owner = 0
	}
	return reply{says: done}
}

// openRecord is the second step out. Any process may repeat it that has read the epoch in the row.
func (m *Model) openRecord(s *state, q request) reply {
	r := &s.record
	if r.older(q.epoch) || m.lacks(reopensealed) && r.phase == sealed ||
		m.lacks(openolder) && r.phase == open && r.token.epoch != q.epoch {
		*r = record{phase: open, token: token{epoch: q.epoch}}
	}
	return reply{says: done}
}

// sealRecord is the first step back, for the holder only.
func (m *Model) sealRecord(s *state, q request) reply {
	r := &s.record
	held := r.heldWith(q) || m.lacks(sealunfenced)
	same := r.token.epoch == q.epoch || m.lacks(sealepoch)
	if r.phase != open && !(m.lacks(sealopen) && r.phase == sealed) || !held || !same {
		return reply{says: refused}
	}
	r.phase, r.owner = sealed, 0
	return reply{says: done}
}

// supersede seals an epoch that the record has not reached, even if an older one has a holder.
func (s *state) supersede(epoch uint8) {
	if s.record.older(epoch) {
		s.record = record{phase: sealed, token: token{epoch: epoch}}
	}
}

// recordAlone is what happens to the record without a request.
func (m *Model) recordAlone(s *state, yield func(*state, step)) {
	if r := s.record; r.owner != 0 {
		n := *s
		n.record.owner = 0
		n.p[r.owner-1].lose(atCluster, r.token)
		yield(&n, step{what: recordExpires})
	}
	if m.lacks(dropsealed) && s.record.phase == sealed {
		n := *s
		n.record = record{}
		yield(&n, step{what: recordDropped})
	}
}
