package sqlstore

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rowlockdb/rowlock/lease"
)

// History is what a session has learned of its server.
type History struct {
	// Name differs for each start of a server, and for each restore.
	Name string
	// Newest is the start of the newest era of the table, -1 if there is none.
	Newest int64
	// Recorded is how many histories the table has. Known says that this is the newest of them; in
	// a file, which has several at once, that it is one of them.
	Recorded int64
	Known    bool
	// ReadOnly says that the server takes no writes.
	ReadOnly bool
}

// Dest returns the destinations of section era-look.
func (h *History) Dest() []any {
	return []any{&h.Name, &h.Newest, &h.Recorded, &h.Known, &h.ReadOnly}
}

const eraWord = "@era"

// FillEra puts the start of an era into a statement.
func FillEra(query, start string) string { return strings.ReplaceAll(query, eraWord, start) }

func grants(query string) bool { return strings.Contains(query, eraWord) }

// EraAt has a session grant in an era that needs not be learned, as in a cluster whose members have
// one history.
func (s *Session) EraAt(start int64) { s.GrantIn(start, strconv.FormatInt(start, 10), nil) }

// GrantIn has a session grant in the era that begins after start. It is called once, before
// anything is granted. Text is the start as its statements have it. Holds returns why the session
// must not grant in the era now, and may be nil.
func (s *Session) GrantIn(start int64, text string, holds func(start int64) error) {
	s.era, s.eraText, s.holds = start, text, holds
}

// EraBounds are the eras in which sessions may grant now.
type EraBounds struct{ First, Last atomic.Int64 }

// Next returns the token that a statement of the session grants to a key which has this one.
func (s *Session) Next(token int64) int64 { return max(token, s.era) + 1 }

// Era is the start of the era in which the session grants.
func (s *Session) Era() int64 { return s.era }

// Refusal returns why the session must not grant now.
func (s *Session) Refusal() error { return s.held(true) }

// held returns why a statement that grants must not be sent now.
func (s *Session) held(grants bool) error {
	if !grants || s.holds == nil {
		return nil
	}
	if b := s.Bounds; b != nil && s.era >= b.First.Load() && s.era <= b.Last.Load() {
		return nil
	}
	return s.holds(s.era)
}

// filled is a statement as the server gets it.
type filled struct {
	text   string
	grants bool
}

// unprepared returns the statement of the session's job as the server gets it. It keeps the text,
// because a search of it would take longer than all else here.
func (s *Session) unprepared() (string, error) {
	f, ok := s.filled[s.job.query]
	if !ok {
		text, err := s.text(s.job.query)
		if err != nil {
			return "", err
		}
		f = filled{text, grants(s.job.query)}
		s.filled[s.job.query] = f
	}
	return f.text, s.held(f.grants)
}

// text returns a statement as the server gets it.
func (s *Session) text(query string) (string, error) {
	switch {
	case !grants(query):
		return query, nil
	case s.eraText == "":
		return "", NotSent{fmt.Errorf("%w: the session has learned no era", lease.ErrConfig)}
	}
	return FillEra(query, s.eraText), nil
}
