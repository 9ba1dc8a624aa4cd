package model

// force is the forced return of a key whose cluster is lost, or is believed to be.
func (m *Model) force(s *state, yield func(*state, step)) {
	if !m.Forced {
		return
	}
	m.validate(s, yield)
	if !s.taken && s.db.row.exists && s.db.row.placement == atCluster {
		m.take(s, yield)
	}
	if s.db.row.placement == returning && (m.waitedLongEnough(s) || m.lacks(nowait)) {
		m.finish(s, yield)
	}
	if s.lost {
		m.reappear(s, yield)
	}
}

// take puts the row between the placements, where the key is not granted. From here on every read
// of the row shows that the key has left the cluster.
func (m *Model) take(s *state, yield func(*state, step)) {
	epoch := s.db.row.token.epoch + 2
	if m.lacks(noforcedepoch) || m.lacks(onebump) {
		epoch -= 2
	}
	if epoch >= m.Epochs {
		return // a forced return could not be completed
	}
	n := *s
	n.db.row = row{exists: true, placement: returning, token: token{epoch: epoch}}
	n.taken, n.lost = true, true
	yield(&n, step{what: taken})
}

// waitedLongEnough stands for the wait by the database's clock: as long as a read of the row
// counts, plus the clocks' margin.
func (m *Model) waitedLongEnough(s *state) bool {
	for i := range m.processes() {
		if s.p[i].valid {
			return false
		}
	}
	return true
}

func (m *Model) finish(s *state, yield func(*state, step)) {
	epoch := s.db.row.token.epoch + 1
	if m.lacks(noforcedepoch) {
		epoch--
	}
	n := *s
	n.db.row = row{exists: true, placement: atTable, token: token{epoch: epoch}}
	yield(&n, step{what: finished})
}

// reappear ends the cluster's absence. Before any other request, its record is superseded.
func (m *Model) reappear(s *state, yield func(*state, step)) {
	n := *s
	n.lost = false
	if r := n.db.row; !m.lacks(nosupersede) {
		n.supersede(max(r.token.epoch, n.db.floor.epoch))
	}
	yield(&n, step{what: reappears})
}

// validate is what each process does with a key that it believes in the cluster. It reads the row
// again and again, and works under a lease of the cluster only as long as its last read counts.
func (m *Model) validate(s *state, yield func(*state, step)) {
	r := &s.db.row
	for i := range m.processes() {
		p := &s.p[i]
		if p.route != atCluster {
			continue
		}
		if p.valid {
			n := *s
			n.p[i].valid = false
			n.p[i].live = p.live && m.lacks(novalidate)
			yield(&n, step{what: looksNoMore, actor: i})
		} else if r.exists && r.placement == atCluster && r.token.epoch == p.epoch {
			n := *s
			n.p[i].valid = true
			yield(&n, step{what: looks, actor: i})
		}
	}
}
