package model

import "strings"

// Promise is a set of what must never be broken.
type Promise uint8

// The promises.
const (
	OneHome        Promise = 1 << iota // never do both sides grant
	OneHolder                          // never do both servers name a holder
	OneBeliever                        // never do two work at once
	TokensGrow                         // every token granted is above every token granted before
	HomeTokensGrow                     // that, of each home alone: no token is granted twice
	FencedInOrder                      // no write passes a fence after one with a higher token
	NobodyStuck                        // from everywhere, a client can be granted the key

	Everything Promise = 1<<iota - 1
)

var promises = []string{
	"both sides grant", "two servers name a holder", "two work at once", "a token is not above all before",
	"a home's token is not above its last", "a fence lets a lower token through", "nobody can be granted the key ever again",
}

// String says what broken promises mean.
func (p Promise) String() string {
	var said []string
	for i, text := range promises {
		if p&(1<<i) != 0 {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// granted notes a token. The homes' last ones are one order, unless they are looked at apart.
func (m *Model) granted(s *state, home uint8, t token) {
	if !s.last[home].less(t) {
		s.broken |= HomeTokensGrow
	}
	if !s.last[0].less(t) || !s.last[1].less(t) {
		s.broken |= TokensGrow
	}
	s.last[home] = t
	if !m.apart() {
		s.last[1-home] = t
	}
}

// breaks says which promises do not hold in s, or were broken by the step to it. While the row is in doubt it grants nothing, and whom it
// names may have given up long ago; the other promises are kept all the same.
func (m *Model) breaks(s *state) Promise {
	b := s.broken
	r := &s.db.row
	apart := s.doubt || s.outlived()
	if (!r.exists || r.home == atTable) && s.record.phase == open && !apart {
		b |= OneHome
	}
	if r.exists && !r.free() && s.record.owner != 0 && !apart {
		b |= OneHolder
	}
	if s.believers() > 1 {
		b |= OneBeliever
	}
	return b
}

// outlived says that the record is one that nobody could reach when the key was taken back: it may still grant, to whom that is no use.
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
