package seam

// Measures are what a store that keeps connections of its own knows of them.
type Measures struct {
	// Lanes is how many connections are open, and Busy how many of them run something now.
	Lanes, Busy int64
	// Batches is how often a lane has taken what was pending, and Requests how much it took in all.
	// Statements is how many statements were sent for them, without BEGIN, COMMIT and ROLLBACK.
	Batches, Requests, Statements int64
	// Listening says that the connection on which other processes notify this one is open.
	Listening bool
}

// Meter is a store that measures itself.
type Meter interface{ Measure() Measures }

// Measure returns what the store knows of its connections. ok is false if it does not know.
func (s *Store) Measure() (m Measures, ok bool) {
	if s.meter == nil {
		return m, false
	}
	return s.meter.Measure(), true
}
