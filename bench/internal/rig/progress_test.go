package rig

import (
	"strings"
	"testing"
)

func TestProgressIsDrawnOnATerminalAndWrittenToNoFile(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		var out strings.Builder
		p := newProgress(2, &out, terminal)
		p.Say("sqlite", "rowlock")
		p.Within().Step()
		p.Step()
		p.Step()
		p.Done()
		if drawn := out.Len() > 0; drawn != terminal {
			t.Errorf("terminal %t: written is %q", terminal, out.String())
		}
	}
}
