package model

import "fmt"

// Model is the protocol and the bounds within which it is explored. The zero value of a field
// leaves out what the field is about.
type Model struct {
	Clients, Movers uint8 // at most 4 together, and 2 with Failover or Forced
	Epochs          uint8 // the last epoch, at most 7
	Grants          uint8 // in an epoch, at most 3
	Duplicates      uint8 // requests that come twice, at most 3

	// Without is the guard, or order, that is removed.
	Without Mutant

	// Failover says that the database fails over once, to a replica that lacks the last statements
	// of these verbs.
	Failover bool
	Lags     Verbs
	// Audit is when an audit looks for records that the row does not know of.
	Audit Audit
	// Fences says that holders write under fences.
	Fences bool
	// Forced says that the key is taken back by force once, and that the cluster reappears at some
	// time after.
	Forced bool
}

// Verbs is a set of statements about the row.
type Verbs uint16

// Statements that an asynchronous replica may not have received.
const (
	Departs Verbs = 1 << depart
	Returns Verbs = 1 << handBack
	Grants  Verbs = 1<<acquireTable | 1<<releaseTable
)

// inFlight is how many requests can be in flight at once.
const inFlight = 2

// state is the whole state. It is small, and is copied.
type state struct {
	db     database
	record record
	p      [4]process
	net    [inFlight]request

	last       [2]token // the last one granted by each placement; by both, if they share one order
	duplicates uint8    // sent so far

	replica    database // the database after a failover
	failedOver bool
	doubt      bool // no audit since the failover, and the table grants nothing
	taken      bool // taken back by force
	lost       bool // the cluster is lost, so that its record cannot be superseded

	broken Promise
}

func (m *Model) processes() uint8 { return m.Clients + m.Movers }

// apart reports whether each placement has an order of tokens of its own.
func (m *Model) apart() bool { return m.Failover || m.Forced }

func (m *Model) first() state {
	var s state
	s.db.row.exists = true
	if m.Failover {
		s.replica = s.db
	}
	return s
}

// steps calls yield with every state that can follow. It reports whether one of them grants a
// client the key.
func (m *Model) steps(s *state, yield func(*state, step)) (grants bool) {
	m.rowAlone(s, yield)
	m.recordAlone(s, yield)
	grants = m.networkDoes(s, yield)
	for i := range m.processes() {
		m.processAlone(s, i, yield)
	}
	m.failover(s, yield)
	m.audit(s, yield)
	m.force(s, yield)
	return grants
}

func (m *Model) check() error {
	most := uint8(4)
	if m.Failover || m.Forced || m.Fences {
		most = 2
	}
	switch n := m.processes(); {
	case n > most:
		return fmt.Errorf("model: %d processes, and there is room for %d", n, most)
	case m.Epochs > 7 || m.Grants > 3 || m.Duplicates > 3:
		return fmt.Errorf(
			"model: %d epochs, %d grants, %d duplicates; at most 7, 3, 3", m.Epochs, m.Grants,
			m.Duplicates,
		)
	}
	return nil
}
