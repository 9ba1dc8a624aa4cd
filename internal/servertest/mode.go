package servertest

import (
	"math/rand/v2"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Mode is how a client waits.
type Mode struct {
	Fair   bool
	Silent bool // without hints
}

func (m Mode) String() string {
	name := "unfair"
	if m.Fair {
		name = "fair"
	}
	if m.Silent {
		return name + " without hints"
	}
	return name
}

// Set sets the mode in a Config.
func (m Mode) Set(c *rowlock.Config) {
	c.Fair = m.Fair
	if m.Silent {
		c.Hints = rowlock.HintsOff
	}
}

// Modes are all there are.
var Modes = []Mode{{}, {Silent: true}, {Fair: true}, {Fair: true, Silent: true}}

func modeNamed(name string) Mode {
	for _, m := range Modes {
		if m.String() == name {
			return m
		}
	}
	return Mode{}
}

// EachMode runs f on every database, as Each does, in two modes that have nothing in common, which
// are drawn for each database: in every mode, ROWLOCK_TEST_WHOLE=1 does.
func EachMode(t *testing.T, f func(s *Scene, m Mode)) {
	t.Helper()
	Each(t, func(s *Scene) {
		modes := Modes
		if !testdb.Whole() {
			first := rand.IntN(len(Modes) / 2)
			modes = []Mode{Modes[first], Modes[len(Modes)-1-first]}
		}
		for _, m := range modes {
			s.Part(m.String(), func(s *Scene) { f(s, m) })
		}
	})
}
