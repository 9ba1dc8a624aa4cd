package servertest

import (
	"testing"

	"github.com/rowlockdb/rowlock"
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

// EachMode runs f on every database, as Each does, in every mode.
func EachMode(t *testing.T, f func(s *Scene, m Mode)) {
	t.Helper()
	Each(t, func(s *Scene) {
		for _, m := range Modes {
			s.Part(m.String(), func(s *Scene) { f(s, m) })
		}
	})
}
