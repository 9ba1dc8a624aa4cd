package bidq

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

// paced is the pace of turns that last for turn and are passed within pass, between processes of
// which each is granted the key within grant.
func paced(processes int, turn, pass, grant time.Duration) *pace {
	p := &pace{crowd: processes}
	for range 100 {
		p.granted(grant)
		p.took(turn, 1)
		p.came(time.Duration(processes-1)*turn + time.Duration(processes)*pass)
	}
	return p
}

func TestATurnHasAsManyGrantsAsAPassIsWorth(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		processes, grants  int
		lasted, turn, pass time.Duration
		ripe               bool
	}{
		"one grant":                {32, 1, 20 * ms, ms, 0, false},
		"one long grant":           {32, 1, 30 * ms, ms, 0, true},
		"two of many processes":    {32, 2, 2 * ms, ms, ms / 10, true},
		"two of two processes":     {2, 2, ms, ms, ms / 10, false},
		"for its part of a round":  {2, 40, 20 * ms, 20 * ms, ms / 10, true},
		"a pass takes long":        {32, 2, 2 * ms, 4 * ms, 4 * ms, false},
		"grants worth it":          {32, 30, 15 * ms, 4 * ms, 4 * ms, true},
		"for as long as any lasts": {32, 3, 30 * ms, 30 * ms, 20 * ms, true},
	} {
		p := paced(c.processes, c.turn, c.pass, ms/4)
		if got := p.ripe(c.grants, c.lasted, 0, 40*ms, 30*ms); got != c.ripe {
			t.Errorf("%s: %d grants of %d processes in %s, a pass takes %s: ripe is %t", name, c.grants,
				c.processes, c.lasted, p.pass(), got)
		}
	}
}

// What delays it says nothing of the store.
func TestAGrantTakesAsLongAsTheShorterOnes(t *testing.T) {
	var p pace
	for i := range 100 {
		took := time.Millisecond
		if i%4 == 3 {
			took = 50 * time.Millisecond
		}
		p.granted(took)
	}
	if p.grant < time.Millisecond || p.grant > 1200*time.Microsecond {
		t.Errorf("a grant takes %s", p.grant)
	}
	for range 100 {
		p.granted(10 * time.Millisecond)
	}
	if p.grant < 9*time.Millisecond {
		t.Errorf("a grant takes %s, although all take longer by now", p.grant)
	}
}

func TestAProcessIsAwayForAsLongAsAPassTakes(t *testing.T) {
	for pass, want := range map[time.Duration]time.Duration{
		0: waitq.Soon, 10 * time.Millisecond: 10 * time.Millisecond, time.Second: 30 * time.Millisecond,
	} {
		p := paced(1000, 5*time.Millisecond, pass, time.Millisecond)
		if got := p.soon(30 * time.Millisecond); got < want || got > want*11/10 {
			t.Errorf("it counts as away after %s, where a pass takes %s", got, pass)
		}
	}
}
