package model

// Audit is when an audit compares the row with the cluster's record.
type Audit uint8

// Audits, each of which recalls a row whose epoch is below the record's. A sealed record counts as
// an open one does, because its tokens were granted.
const (
	NoAudit Audit = iota
	// At any time, by a request that may be late as all are; the table grants meanwhile.
	AuditAlways
	AuditBefore // after a failover the table grants nothing until the audit
	// AuditBefore; it also seals at the cluster the epoch that the row's next Depart would begin.
	AuditAndClose
)

// replicate copies what verb has changed to the replica, with all changes before. It copies a verb
// that lags later.
func (m *Model) replicate(s *state, verb uint8) {
	if m.Failover && !s.failedOver && m.Lags&(1<<verb) == 0 {
		s.replica = s.db
	}
}

// failover loses what the replica does not have. Nothing is lost a second time.
func (m *Model) failover(s *state, yield func(*state, step)) {
	if !m.Failover || s.failedOver {
		return
	}
	if s.replica != s.db {
		n := *s
		n.replica = n.db
		yield(&n, step{what: replicaFollows})
	}
	n := *s
	n.db, n.replica = n.replica, database{}
	n.failedOver = true
	n.doubt = m.Audit >= AuditBefore
	yield(&n, step{what: failsOver})
}

// audit acts only if there is something to repair, because otherwise it changes nothing.
func (m *Model) audit(s *state, yield func(*state, step)) {
	switch r := &s.record; {
	case m.Audit == AuditAlways && r.phase != absent:
		n := *s
		q := request{verb: recall, epoch: r.token.epoch}
		if s.net[0].verb != recall && s.net[1].verb != recall && n.send(q) {
			yield(&n, step{what: audits})
		}
	case s.doubt:
		n := *s
		if r.phase != absent {
			m.recall(&n, request{verb: recall, epoch: r.token.epoch})
		}
		if row := &n.db.row; m.Audit == AuditAndClose && row.placement == atTable {
			n.supersede(max(row.token.epoch, n.db.floor.epoch) + 1)
		}
		n.doubt = false
		yield(&n, step{what: audits})
	}
}
