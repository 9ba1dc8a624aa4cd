package top

import (
	"errors"
	"strings"
	"testing"
)

// A server's message may quote what any program has stored.
func TestAnErrorOfTheServerDoesNothingToTheTerminal(t *testing.T) {
	m := &model{width: 200, height: 10}
	m.take(loaded{err: errors.New("ERROR: invalid value \x1b]0;owned\a\u202e")})
	if shows := m.screen(); strings.Contains(shows, "\x1b]") || strings.Contains(shows, "\u202e") || !strings.Contains(shows, `\x1b]0;owned\a`) {
		t.Errorf("top shows %q", shows)
	}
}
