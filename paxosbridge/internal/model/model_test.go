package model

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/race"
)

// small is complete within seconds, even with the race detector; full is for `make model`.
var (
	small = Model{Clients: 1, Movers: 1, Epochs: 3, Grants: 2, Duplicates: 1}
	full  = Model{Clients: 1, Movers: 1, Epochs: 4, Grants: 2, Duplicates: 1}
)

func soaking() bool { return os.Getenv("ROWLOCK_SOAK_STATES") != "" }

// drawn is which of the large explorations this run has, and which fourth of the failovers and of
// the guards that follow from others: they find the same in each run of the same model, and take a
// minute, or seconds each.
var drawn = rand.IntN(4)

// large skips the exploration with this number if another was drawn.
func large(t *testing.T, number int) {
	t.Helper()
	if number != drawn && os.Getenv("ROWLOCK_TEST_WHOLE") == "" && !soaking() {
		t.Skip("this run has drawn another exploration: make model has all")
	}
}

func explore(t *testing.T, m Model, asked Promise, limit int) Result {
	t.Helper()
	r, err := m.Explore(asked, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf(
		"%v: %d states, %d transitions, %d steps deep, %v", m.Without, r.States, r.Transitions,
		r.Depth, r.Elapsed.Round(1e6),
	)
	return r
}

// holds explores completely, and wants no broken promise.
func holds(t *testing.T, m Model, asked Promise) {
	t.Helper()
	r := explore(t, m, asked, 0)
	if r.Broken != 0 {
		t.Fatalf("%v, after\n%s", r.Broken, traceText(r.Trace))
	}
	if !r.Complete {
		t.Fatal("not all states were looked at")
	}
}

// breaks wants one of these promises to break, and logs a shortest trace to that.
func breaks(t *testing.T, m Model, asked Promise) {
	t.Helper()
	r := explore(t, m, asked, 0)
	if r.Broken == 0 {
		t.Fatalf("nothing was broken, and %v should be, where %s", asked, mutantTexts[m.Without][1])
	}
	t.Logf("where %s: %v, after\n%s", mutantTexts[m.Without][1], r.Broken, traceText(r.Trace))
}

func traceText(trace []string) string {
	var b strings.Builder
	for i, line := range trace {
		b.WriteString(strconv.Itoa(i+1) + ". " + line + "\n")
	}
	return b.String()
}

func TestOneHolderAndNoStuckKey(t *testing.T) {
	m := small
	if race.Enabled {
		m.Grants = 1
	}
	holds(t, m, Everything)
}

func TestOneHolderAndNoStuckKeyInFourEpochs(t *testing.T) {
	race.Skip(t)
	large(t, 0)
	holds(t, full, Everything)
}

func TestOneHolderWithTwoClients(t *testing.T) {
	race.Skip(t)
	large(t, 1)
	m := small
	m.Clients, m.Grants = 2, 1
	holds(t, m, Everything&^NobodyStuck)
}

func TestLargerBoundsHoldAsFarAsTheyAreExplored(t *testing.T) {
	limit, err := strconv.Atoi(os.Getenv("ROWLOCK_SOAK_STATES"))
	if err != nil {
		t.Skip("ROWLOCK_SOAK_STATES says how many states are looked at: `make soak` sets it")
	}
	for _, movers := range []uint8{1, 2} {
		m := small
		m.Clients, m.Movers = 2, movers
		r := explore(t, m, Everything&^NobodyStuck, limit)
		if r.Broken != 0 {
			t.Errorf("%d movers: %v, after\n%s", movers, r.Broken, traceText(r.Trace))
		}
	}
}

func TestStatesArePackedWithoutLoss(t *testing.T) {
	race.Skip(t)
	ext := Model{
		Clients: 1, Movers: 1, Epochs: 3, Grants: 1, Failover: true, Lags: Departs, Fences: true,
	}
	many := Model{Clients: 2, Movers: 2, Epochs: 3, Grants: 2, Duplicates: 1}
	for _, m := range []Model{small, ext, many} {
		x := &exploration{model: &m}
		x.run(20_000)
		for i := range x.found.shards {
			for _, k := range x.found.shards[i].states {
				if got := m.pack(m.unpack(k)); got != k {
					t.Fatalf("%x became %x", k, got)
				}
			}
		}
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	for _, m := range []Model{
		{Clients: 3, Movers: 2}, {Clients: 2, Movers: 1, Failover: true}, {Epochs: 8}, {Grants: 4}, {Duplicates: 4},
	} {
		if _, err := m.Explore(Everything, 0); err == nil {
			t.Errorf("%+v was explored", m)
		}
	}
}
