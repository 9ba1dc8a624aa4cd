package conn

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/rowlockdb/rowlock/lease"
)

const eraWord = "@era"

// FillEra puts the start of an era into a statement.
func FillEra(query, start string) string { return strings.ReplaceAll(query, eraWord, start) }

func grants(query string) bool { return strings.Contains(query, eraWord) }

// EraAt has a session grant in an era that needs not be learned, as in a cluster whose members have
// one history.
func (s *Session) EraAt(start lease.Token) { s.GrantIn(start, start.String(), nil) }

// GrantIn has a session grant in the era that begins after start. It is called once, before
// anything is granted. Text is the start as its statements have it. Holds returns why the session
// must not grant in the era now, and may be nil.
func (s *Session) GrantIn(start lease.Token, text string, holds func(start lease.Token) error) {
	s.era, s.eraOf.text, s.holds = start, text, holds
}

// eraOf is in which era a session grants, and whether it may; see package era.
type eraOf struct {
	// Bounds, if they are set, spare a session within them the function of GrantIn.
	Bounds *EraBounds

	era   lease.Token                   // its start
	text  string                        // "" until it is learned
	holds func(start lease.Token) error // returns why the session must not grant; may be nil
}

// EraBounds are the eras in which sessions may grant now.
type EraBounds struct{ First, Last atomic.Int64 }

// Next returns the token that a statement of the session grants to a key which has this one.
func (s *Session) Next(t lease.Token) lease.Token { return min(max(t, s.era), lease.MaxToken-1) + 1 }

// CheckToken refuses a grant with a token that no grant has. A fence compares tokens, and takes 0
// for none: a row with the token -1 would get it from token + 1.
func CheckToken(granted bool, token lease.Token) error {
	if granted && (token <= 0 || token >= lease.MaxToken) {
		return fmt.Errorf("%w: a grant with the token %d", lease.ErrCorrupt, token)
	}
	return nil
}

// Era is the start of the era in which the session grants.
func (s *Session) Era() lease.Token { return s.era }

// Refusal returns why the session must not grant now.
func (s *Session) Refusal() error { return s.held(true) }

// held returns why a statement that grants must not be sent now.
func (s *Session) held(grants bool) error {
	if !grants || s.holds == nil {
		return nil
	}
	if b := s.Bounds; b != nil && int64(s.era) >= b.First.Load() && int64(s.era) <= b.Last.Load() {
		return nil
	}
	return s.holds(s.era)
}

// unprepared returns a statement as the server gets it. It keeps the text, because a search of it
// would take longer than all else here.
func (s *Session) unprepared(query string) (string, error) {
	st, ok := s.stmts[query]
	if !ok {
		text, err := s.text(query)
		if err != nil {
			return "", err
		}
		st = &statement{text: text, grants: grants(query)}
		s.stmts[query] = st
	}
	return st.text, s.held(st.grants)
}

// text returns a statement as the server gets it.
func (s *Session) text(query string) (string, error) {
	switch {
	case !grants(query):
		return query, nil
	case s.eraOf.text == "":
		return "", NotSent{fmt.Errorf("%w: the session has learned no era", lease.ErrConfig)}
	}
	return FillEra(query, s.eraOf.text), nil
}
