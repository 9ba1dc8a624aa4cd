package paxosbridge

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/paxosbridge/internal/heat"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// steady notes a key n times a second for d.
func steady(h *heat.Counters, from time.Time, d time.Duration, key string, n int) time.Time {
	for i := range int(d.Seconds() * float64(n)) {
		h.Note(from.Add(time.Duration(i)*time.Second/time.Duration(n)), key, 1)
	}
	return from.Add(d)
}

// play asks a decider every second which keys move, and moves them.
type play struct {
	*decider
	now    time.Time
	away   map[string]route
	stayed map[string]time.Time
}

func newPlay(t *testing.T, cfg Config) *play {
	full, err := cfg.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return &play{
		&decider{cfg: &full, heat: heat.New(full.Heat.watched(), noon)}, noon, make(map[string]route),
		make(map[string]time.Time),
	}
}

func (p *play) run(d time.Duration, rates map[string]int) (moves []string) {
	for range int(d.Seconds()) {
		for key, rate := range rates {
			steady(p.heat, p.now, time.Second, key, rate)
		}
		p.now = p.now.Add(time.Second)
		out, back := p.decide(p.now, p.away, p.stayed)
		for _, key := range out {
			p.away[key] = route{since: p.now}
			moves = append(moves, "out "+key)
		}
		for _, key := range back {
			delete(p.away, key)
			p.stayed[key] = p.now
			moves = append(moves, "back "+key)
		}
	}
	return moves
}

func (p *play) want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: moves %q, want %q", what, got, want)
	}
}

func TestAKeyMovesWhenItHasBeenHotAndBackWhenItHasBeenCool(t *testing.T) {
	p := newPlay(t, Config{Heat: Heat{Hot: 1000, Cool: 200}})
	p.want(t, "lukewarm", p.run(time.Minute, map[string]int{"k": 800}))
	p.want(t, "hot for a moment", p.run(3*time.Second, map[string]int{"k": 3000}))
	p.want(t, "and not any more", p.run(30*time.Second, map[string]int{"k": 300}))
	p.want(t, "hot", p.run(12*time.Second, map[string]int{"k": 2000}), "out k")
	p.want(t, "between", p.run(3*time.Minute, map[string]int{"k": 500}))
	p.want(t, "cool", p.run(30*time.Second, map[string]int{"k": 50}), "back k")
	p.want(t, "hot again at once", p.run(30*time.Second, map[string]int{"k": 2000}))
	p.want(t, "hot when it has stayed", p.run(60*time.Second, map[string]int{"k": 2000}), "out k")
	p.want(t, "cool at once", p.run(10*time.Second, nil))
	p.want(t, "cool when it has stayed", p.run(60*time.Second, nil), "back k")
}

// This process does not know the heat of others, but it sees that the key is held.
func TestAKeyThatOthersHoldIsNotCool(t *testing.T) {
	p := newPlay(t, Config{Heat: Heat{MinStay: time.Second}})
	p.away["k"] = route{since: noon, held: true}
	p.want(t, "held by others", p.run(5*time.Minute, nil))
	p.away["k"] = route{since: noon}
	p.want(t, "free", p.run(10*time.Second, nil), "back k")
}

func TestPinnedKeys(t *testing.T) {
	pins := map[string]Pin{"table": Never, "cluster": Always}
	p := newPlay(t, Config{Heat: Heat{MinStay: time.Second}, Pin: func(key string) Pin { return pins[key] }})
	p.want(
		t, "at once", p.run(time.Second, map[string]int{"cluster": 1, "table": 9000}),
		"out cluster",
	)
	p.want(t, "for ever", p.run(5*time.Minute, map[string]int{"table": 9000}))
	pins["cluster"] = Never
	p.want(t, "changed", p.run(time.Second, nil), "back cluster")
}

func TestNoMoreThanMostMove(t *testing.T) {
	p := newPlay(t, Config{Heat: Heat{Most: 2}})
	p.want(
		t, "the two hottest",
		p.run(30*time.Second, map[string]int{"a": 3000, "b": 9000, "c": 6000}), "out b", "out c",
	)
}

// Pinned keys are not in the cluster because of their heat.
func TestPinnedKeysLeaveRoomForHotOnes(t *testing.T) {
	p := newPlay(t, Config{Heat: Heat{Most: 1}, Pin: func(key string) Pin {
		if key == "hot" || key == "warm" {
			return ByHeat
		}
		return Always
	}})
	p.away["a"], p.away["b"] = route{since: noon}, route{since: noon}
	p.want(t, "one", p.run(30*time.Second, map[string]int{"hot": 3000, "warm": 2000}), "out hot")
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for _, cfg := range []Config{
		{Placement: -1},
		{Placement: 32767},
		{Heat: Heat{Hot: 10, Cool: 10}},
		{Heat: Heat{Hot: math.NaN()}},
		{Heat: Heat{Cool: -1}},
		{Heat: Heat{Dwell: -1}},
		{Heat: Heat{MinStay: -1}},
		{Heat: Heat{Most: -1}},
		{Delegation: -1},
		{Delegation: time.Minute, Refresh: 40 * time.Second},
		{MoveTimeout: -1},
	} {
		if _, err := cfg.withDefaults(); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}
