package crew

import "testing"

// Otherwise one key would have all the waiters, or one process would keep to one key.
func TestSharedKeysComeInTurnAndProcessesBeginWithDifferentOnes(t *testing.T) {
	w := Way{Series: 'x'}
	for process := range 2 {
		what := Task{Way: w, Shared: 2, Process: process}
		for n := range 4 {
			if got, want := what.key(0, n), w.Shared((process+n)%2); got != want {
				t.Errorf("process %d, pair %d: %s, not %s", process, n, got, want)
			}
		}
	}
	if got := (Task{Way: w, Process: 5}).key(3, 7); got != w.Key() {
		t.Errorf("of one key there is %s too", got)
	}
}
