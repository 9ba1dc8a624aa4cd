package model

import "strings"

// Promise is a set of invariants.
type Promise uint8

// The invariants.
const (
	OnePlacement   Promise = 1 << iota // the table and the cluster never both grant
	OneHolder                          // the table and the cluster never both name a holder
	OneBeliever                        // two holders never work at once
	TokensGrow                         // every token granted is above all before it
	HomeTokensGrow                     // the same for each placement alone: no token is granted twice
	FencedInOrder                      // no write passes a fence after one with a higher token
	NobodyStuck                        // from every state a client can be granted the key

	Everything Promise = 1<<iota - 1
)

var promises = []string{
	"the table and the cluster both grant",
	"both name a holder",
	"two holders work at once",
	"a token is not above all before it",
	"a placement's token is not above its last",
	"a fence lets a lower token through",
	"no client can be granted the key ever again",
}

// String describes broken promises.
func (p Promise) String() string {
	var said []string
	for i, text := range promises {
		if p&(1<<i) != 0 {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// granted notes a token. The placements share one order, unless apart.
func (m *Model) granted(s *state, placement uint8, t token) {
	if !s.last[placement].less(t) {
		s.broken |= HomeTokensGrow
	}
	if !s.last[0].less(t) || !s.last[1].less(t) {
		s.broken |= TokensGrow
	}
	s.last[placement] = t
	if !m.apart() {
		s.last[1-placement] = t
	}
}

// breaks returns the promises that do not hold in s, or were broken by the step to it. A row in
// doubt grants nothing, and the holder it names may have released the key long ago. The other
// promises hold all the same.
func (m *Model) breaks(s *state) Promise {
	b := s.broken
	r := &s.db.row
	apart := s.doubt || s.outlived()
	if (!r.exists || r.placement == atTable) && s.record.phase == open && !apart {
		b |= OnePlacement
	}
	if r.exists && !r.free() && s.record.owner != 0 && !apart {
		b |= OneHolder
	}
	if s.believers() > 1 {
		b |= OneBeliever
	}
	return b
}

// outlived reports whether the cluster was lost when the key was taken back, and its record is
// still below the row. It may still grant then, and no fence accepts its tokens.
func (s *state) outlived() bool {
	return s.lost && s.record.token.epoch < max(s.db.row.token.epoch, s.db.floor.epoch)
}

func (s *state) believers() (n int) {
	for i := range s.p {
		if s.p[i].live {
			n++
		}
	}
	return n
}
