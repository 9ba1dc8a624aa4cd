package model

// Homes of a key, as the row names them.
const (
	atTable uint8 = iota
	atCluster
	returning // taken back by force, and not granted yet
)

// token orders grants: by epoch, and within an epoch by count.
type token struct{ epoch, count uint8 }

func (t token) less(u token) bool {
	return t.epoch < u.epoch || t.epoch == u.epoch && t.count < u.count
}

// row is a key's row in the database, the authority on the key's placement. One statement changes
// it at a time.
type row struct {
	exists    bool
	placement uint8
	// The last one granted; if the key is away, its epoch, and the last count that was fenced with.
	token   token
	owner   uint8 // 1 + the process; 0: no owner
	expired bool  // owner's lease has expired; the row names the owner until the next grant
}

func (r *row) free() bool { return r.owner == 0 || r.expired }

func (r *row) heldWith(q request) bool {
	return r.exists && r.owner == q.from+1 && r.token == q.token()
}

// database is what one transaction sees, and what a failover loses together.
type database struct {
	row    row
	floor  token // the highest token of deleted rows
	fenced token // the token of the last write that passed a fence
}

// acquireRow is the table's statement that grants.
func (m *Model) acquireRow(s *state, q request) reply {
	r := &s.db.row
	switch {
	case s.doubt:
		return reply{says: refused}
	case !r.exists:
		first := token{s.db.floor.epoch, s.db.floor.count + 1}
		if m.lacks(nofloor) {
			first = token{0, 1}
		}
		return m.grantRow(s, q, first)
	case r.placement == atCluster && !m.lacks(nohomeguard):
		return reply{moved, r.token}
	case r.placement == returning && !m.lacks(nohomeguard), !r.free():
		return reply{says: refused}
	}
	return m.grantRow(s, q, token{r.token.epoch, r.token.count + 1})
}

func (m *Model) grantRow(s *state, q request, t token) reply {
	if t.count > m.Grants || t.epoch > m.Epochs {
		return reply{says: beyond}
	}
	r := &s.db.row
	if !r.exists {
		*r = row{exists: true}
	}
	r.token, r.owner, r.expired = t, q.from+1, false
	m.granted(s, atTable, t)
	return reply{granted, t}
}

func (m *Model) releaseRow(s *state, q request) reply {
	if r := &s.db.row; r.placement == atTable && r.heldWith(q) {
		r.owner, r.expired = 0, false
	}
	return reply{says: done}
}

// depart is the first step out. It does not check the clock: while the row names the holder of an
// expired lease, no other process was granted the key.
func (m *Model) depart(s *state, q request) reply {
	r := &s.db.row
	named := (r.owner == q.from+1 || m.lacks(departowner)) &&
		(r.token == q.token() || m.lacks(departtoken)) ||
		m.lacks(flipunfenced)
	if !r.exists || !named || r.placement != atTable && !m.lacks(departhome) {
		return reply{says: refused}
	}
	epoch := q.epoch + 1
	if m.lacks(noepochbump) {
		epoch--
	}
	if epoch > m.Epochs {
		return reply{says: beyond}
	}
	*r = row{exists: true, placement: atCluster, token: token{epoch: epoch}}
	return reply{done, r.token}
}

// giveBack is the second step back, which any process may repeat. The new epoch is counted from the
// one that it names.
func (m *Model) giveBack(s *state, q request) reply {
	r := &s.db.row
	there := r.placement == atCluster || m.lacks(returnhome)
	if !r.exists || !there || r.token.epoch != q.epoch && !m.lacks(retnoepoch) {
		return reply{says: refused}
	}
	if q.epoch+1 > m.Epochs {
		return reply{says: beyond}
	}
	*r = row{exists: true, placement: atTable, token: token{epoch: q.epoch + 1}}
	return reply{says: done}
}

// recall puts the row where an open record says that the key is. It only raises the epoch. If the
// row is absent, the floor bounds what it may lower.
func (m *Model) recall(s *state, q request) reply {
	r := &s.db.row
	last := r.token
	if !r.exists {
		last = s.db.floor
		if m.lacks(recallfloor) {
			last = token{}
		}
	}
	if last.epoch >= q.epoch && !m.lacks(recalllower) {
		return reply{says: refused}
	}
	*r = row{exists: true, placement: atCluster, token: token{epoch: q.epoch}}
	return reply{says: done}
}

func (m *Model) readRow(s *state) reply {
	if r := &s.db.row; r.exists && r.placement == atCluster {
		return reply{moved, r.token}
	}
	return reply{says: done}
}

// passes reports whether a fence accepts a write of this lease, as Fence and FenceAt do.
func (d *database) passes(p *process, owner uint8) bool {
	r := &d.row
	if !r.exists || r.placement != p.route {
		return false
	}
	if p.route == atTable {
		return r.owner == owner && r.token == p.token()
	}
	return r.token.epoch == p.epoch && r.token.count <= p.count
}

// rowAlone is what happens to the row without a request.
func (m *Model) rowAlone(s *state, yield func(*state, step)) {
	r := s.db.row
	if r.owner != 0 && !r.expired {
		n := *s
		n.db.row.expired = true
		n.p[r.owner-1].lose(atTable, r.token)
		yield(&n, step{what: rowExpires})
	}
	if r.exists && r.free() && (r.placement == atTable || m.lacks(reapmoved)) {
		n := *s
		if n.db.floor.less(r.token) {
			n.db.floor = r.token
		}
		n.db.row = row{}
		m.replicate(&n, reap)
		yield(&n, step{what: rowReaped})
	}
}
