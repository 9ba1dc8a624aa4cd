package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/lease"
)

const ttl = 30 * time.Second

// call is an event whose times are in seconds.
func call(k history.Kind, process string, lock int64, token lease.Token, sent, told float64, r history.Result) history.Event {
	return history.Event{
		Kind: k, Process: process, Lock: lock, Token: token, Key: "k", Act: "test", TTL: ttl, Result: r,
		Sent: int64(sent * 1e9), Told: int64(told * 1e9),
	}
}

func grant(process string, lock int64, token lease.Token, sent, told float64) history.Event {
	return call(history.Grant, process, lock, token, sent, told, history.OK)
}

func unlock(process string, lock int64, token lease.Token, sent, told float64, r history.Result) history.Event {
	return call(history.Unlock, process, lock, token, sent, told, r)
}

func write(process string, lock int64, token lease.Token, value int64, op string, sent, told float64, r history.Result) history.Event {
	e := call(history.Write, process, lock, token, sent, told, r)
	e.Op, e.Value = op, value
	return e
}

func leaving(e history.Event) history.Event {
	e.Left = true
	return e
}

func passing(e history.Event) history.Event {
	e.Passes = true
	return e
}

func forced(e history.Event) history.Event {
	e.Key = ForcedPrefix
	return e
}

func row(op, process string, lock int64, token lease.Token, value int64) history.Row {
	return history.Row{Op: op, Key: "k", Process: process, Lock: lock, Token: token, Value: value}
}

func stall(process string, from, to float64) history.Event {
	return history.Event{Kind: history.Stall, Process: process, Sent: int64(from * 1e9), Told: int64(to * 1e9)}
}

// Each kind of violation is seen in the smallest history that has it, and nothing else is. Beside
// each is what looks like it and is right.
func TestEachViolationIsSeen(t *testing.T) {
	ok, lost, refused, unknown := history.OK, history.Lost, history.Refused, history.Unknown
	a, b := grant("1", 1, 1, 0, 1), grant("2", 1, 2, 3, 4)
	for _, c := range []struct {
		name string
		in   Input
		want []Kind
	}{
		{"one after the other", Input{Events: []history.Event{a, unlock("1", 1, 1, 1, 2, ok), b}}, nil},
		{"a token granted twice, at once", Input{Events: []history.Event{a, grant("2", 1, 1, 0, 1)}}, []Kind{Twice}},
		{"a token granted twice, later", Input{Events: []history.Event{a, grant("2", 1, 1, 2, 3)}}, []Kind{Twice}},
		{"a token granted to another handle of one process", Input{Events: []history.Event{a, grant("1", 2, 1, 2, 3)}}, []Kind{Twice}},
		{"a token falls", Input{Events: []history.Event{grant("1", 1, 2, 0, 1), grant("2", 1, 1, 2, 3)}}, []Kind{Falls}},
		{"a token falls behind one of long ago", Input{Events: []history.Event{
			grant("1", 1, 9, 0, 1), grant("2", 1, 3, 0, 2), grant("1", 2, 4, 3, 4),
		}}, []Kind{Falls}},
		{"answers overtake each other", Input{Events: []history.Event{grant("1", 1, 2, 0, 1), grant("2", 1, 1, 0, 3)}}, nil},
		{"the false holder unlocks", Input{Events: []history.Event{a, b, unlock("1", 1, 1, 5, 6, ok)}}, []Kind{FalseUnlock}},
		{"the false holder is told", Input{Events: []history.Event{a, b, unlock("1", 1, 1, 30, 31, lost)}}, nil},
		{"the other is granted during the unlock", Input{Events: []history.Event{a, unlock("1", 1, 1, 2, 6, ok), b}}, nil},
		{"a transaction had unlocked", Input{Events: []history.Event{a, b, leaving(unlock("1", 1, 1, 5, 6, ok))}}, nil},
		{"a stale write", Input{
			Events:  []history.Event{a, b, write("1", 1, 1, 1, "x", 5, 6, ok)},
			Journal: []history.Row{row("x", "1", 1, 1, 1)}, Counters: map[string]int64{"k": 1},
		}, []Kind{StaleWrite}},
		{"lost too early", Input{Events: []history.Event{a, unlock("1", 1, 1, 1, 2, lost)}}, []Kind{EarlyLoss}},
		{"lost too early, and the fence says so", Input{Events: []history.Event{a, write("1", 1, 1, 0, "x", 1, 2, lost)}}, []Kind{EarlyLoss}},
		{"lost before a section's function began", Input{Events: []history.Event{
			call(history.Grant, "1", 1, 0, 0, 2, lost),
		}}, []Kind{EarlyLoss}},
		{"lost before a section's function began, late", Input{Events: []history.Event{
			call(history.Grant, "1", 1, 0, 0, 21, lost),
		}}, nil},
		{"lost to an operator", Input{Events: []history.Event{
			forced(a), forced(unlock("1", 1, 1, 1, 2, lost)), forced(call(history.Grant, "2", 1, 0, 1, 2, lost)),
		}}, nil},
		{"a COMMIT hands over", Input{
			Events:  []history.Event{a, passing(write("1", 1, 1, 1, "x", 1, 2, ok))},
			Journal: []history.Row{row("x", "1", 1, 1, 1)}, Counters: map[string]int64{"k": 1}, HandOvers: true,
		}, nil},
		{"no COMMIT has handed over", Input{
			Events:    []history.Event{a, passing(write("1", 1, 1, 1, "x", 1, 2, refused)), passing(write("1", 1, 1, 1, "y", 1, 2, unknown))},
			HandOvers: true,
		}, []Kind{Nothing}},
		{"lost late, in rough weather", Input{Events: []history.Event{a, unlock("1", 1, 1, 1, 31, lost)}}, nil},
		{"lost late, and all was well", Input{
			Events:  []history.Event{a, stall("1", 5, 6), stall("2", 5, 25), unlock("1", 1, 1, 1, 31, lost)},
			Healthy: map[int]bool{0: true},
		}, []Kind{HealthyLoss}},
		{"lost late, after a stall", Input{
			Events:  []history.Event{a, stall("1", 5, 11), unlock("1", 1, 1, 1, 31, lost)},
			Healthy: map[int]bool{0: true},
		}, nil},
		{"counting", Input{
			Events: []history.Event{
				a, write("1", 1, 1, 1, "x", 1, 2, ok), write("1", 1, 1, 2, "y", 2, 3, unknown), write("1", 1, 1, 3, "z", 2, 3, refused),
			},
			Journal: []history.Row{row("x", "1", 1, 1, 1), row("y", "1", 1, 1, 2)}, Counters: map[string]int64{"k": 2},
		}, nil},
		{"a write of a killed process", Input{
			Journal: []history.Row{row("x", "1", 1, 1, 1)}, Counters: map[string]int64{"k": 1},
		}, nil},
		{"two holders write", Input{
			Journal: []history.Row{row("x", "1", 1, 1, 1), row("y", "2", 1, 2, 1)}, Counters: map[string]int64{"k": 1},
		}, []Kind{CounterWrong, ValueTwice}},
		{"two transactions of one lock", Input{
			Journal: []history.Row{row("x", "1", 1, 1, 1), row("y", "1", 1, 1, 1)}, Counters: map[string]int64{"k": 1},
		}, []Kind{CounterWrong, WithinLock}},
		{"two holders of one token", Input{
			Journal: []history.Row{row("x", "1", 1, 1, 1), row("y", "2", 1, 1, 2)}, Counters: map[string]int64{"k": 2},
		}, []Kind{TwoHolders}},
		{"an old token writes last", Input{
			Journal: []history.Row{row("x", "1", 1, 2, 1), row("y", "2", 1, 1, 2)}, Counters: map[string]int64{"k": 2},
		}, []Kind{TokenOrder}},
		{"an acknowledged write is gone", Input{Events: []history.Event{a, write("1", 1, 1, 1, "x", 1, 2, ok)}}, []Kind{LostWrite}},
		{"a refused write is there", Input{
			Events:  []history.Event{a, write("1", 1, 1, 1, "x", 1, 2, refused)},
			Journal: []history.Row{row("x", "1", 1, 1, 1)}, Counters: map[string]int64{"k": 1},
		}, []Kind{RefusedWrite}},
		{"a write is another than was told", Input{
			Events:  []history.Event{a, write("1", 1, 1, 7, "x", 1, 2, ok)},
			Journal: []history.Row{row("x", "1", 1, 1, 1)}, Counters: map[string]int64{"k": 1},
		}, []Kind{StrangeWrite}},
		{"the counter lags", Input{
			Journal: []history.Row{row("x", "1", 1, 1, 1), row("y", "1", 1, 1, 2)}, Counters: map[string]int64{"k": 1},
		}, []Kind{CounterWrong}},
		{"the counter has no journal", Input{Counters: map[string]int64{"k": 1}}, []Kind{CounterWrong}},
		{"an unlocked key is still held", Input{
			Events: []history.Event{a, unlock("1", 1, 1, 1, 2, ok)}, Left: []history.Row{{Key: "k", Token: 1}}, Killed: true,
		}, []Kind{StillHeld}},
		{"a key is held that nobody was granted", Input{Events: []history.Event{a}, Left: []history.Row{{Key: "k", Token: 2}}}, []Kind{Orphan}},
		{"a key is held after Close", Input{Events: []history.Event{a}, Left: []history.Row{{Key: "k", Token: 1}}}, []Kind{Orphan}},
		{"a key of a killed process is held", Input{Left: []history.Row{{Key: "k", Token: 2}}, Killed: true}, nil},
		{"a key is held after a Close that failed", Input{
			Events: []history.Event{a, call(history.Close, "1", 0, 0, 5, 15, history.Unknown)}, Left: []history.Row{{Key: "k", Token: 1}},
		}, nil},
		{"nothing was granted", Input{Phases: []string{"storm"}}, []Kind{Nothing}},
		{"a write without a fence is refused", Input{
			Events: []history.Event{write("1", 1, 0, 1, "x", 1, 2, history.Unfenced)}, Protected: true,
		}, nil},
		{"a write without a fence is there", Input{
			Events:  []history.Event{write("1", 1, 0, 1, "x", 1, 2, history.Unfenced)},
			Journal: []history.Row{row("x", "1", 1, 0, 1)}, Counters: map[string]int64{"k": 1}, Protected: true,
		}, []Kind{RefusedWrite}},
		{"none is refused", Input{
			Events: []history.Event{write("1", 1, 0, 1, "x", 1, 2, refused)}, Protected: true,
		}, []Kind{Nothing}},
		{"a fenced write is refused as if it were not", Input{
			Events: []history.Event{a, write("1", 1, 1, 1, "x", 1, 2, history.Unfenced)}, Protected: true,
		}, []Kind{FencedWrite}},
		{"nothing was written", Input{Events: []history.Event{a}, Phases: []string{"storm"}, Writes: true}, []Kind{Nothing}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []Kind
			for _, v := range All(&c.in).Violations {
				got = append(got, v.Kind)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// What is no violation is still counted.
func TestFindingsAreCounted(t *testing.T) {
	long := grant("1", 1, 1, 0, 4)
	long.Limit = time.Second
	in := Input{Events: []history.Event{
		long,
		call(history.Grant, "1", 2, 0, 4, 5, history.Unknown),
		call(history.Unlock, "1", 1, 1, 5, 6, history.Unknown),
		call(history.Write, "1", 1, 1, 5, 6, history.Unknown),
		call(history.Grant, "1", 3, 0, 6, 7, history.Other),
		grant("2", 1, 2, 40, 41), unlock("2", 1, 2, 80, 81, history.Lost),
		stall("1", 5, 6),
	}, Left: []history.Row{{Key: "k", Token: 9}}, Killed: true}
	r := All(&in)
	var got []Kind
	for _, f := range r.Findings {
		got = append(got, f.Kind)
	}
	slices.Sort(got)
	want := []Kind{LateCalls, UnknownTxs, UnknownAsks, LostLocks, Errors, Stalls, UnknownEnds, Remaining}
	slices.Sort(want)
	if len(r.Violations) != 0 || !slices.Equal(got, want) {
		t.Errorf("%+v, %q; want %q", r.Violations, got, want)
	}
}

// simulate is a correct lock server under random callers: what they are told is a correct history,
// in which answers come late and overtake each other, leases run out and outcomes are unknown.
func simulate(rng *rand.Rand) *Input {
	in := &Input{Counters: map[string]int64{}, Phases: []string{"all"}}
	s := &server{in: in, rng: rng}
	for i := range 400 {
		s.at += rng.Float64()
		s.step(fmt.Sprint(rng.IntN(4)), int64(i))
	}
	rng.Shuffle(len(in.Events), func(i, j int) { in.Events[i], in.Events[j] = in.Events[j], in.Events[i] })
	rng.Shuffle(len(in.Journal), func(i, j int) { in.Journal[i], in.Journal[j] = in.Journal[j], in.Journal[i] })
	return in
}

// server has one key.
type server struct {
	in     *Input
	rng    *rand.Rand
	at     float64
	token  lease.Token
	value  int64
	holder *history.Event
	until  float64
	old    []*history.Event // holders that were deposed and do not know it
}

// around is when a call was sent and told that happened now.
func (s *server) around() (sent, told float64) {
	return s.at - 5*s.rng.Float64(), s.at + 5*s.rng.Float64()
}

func (s *server) step(process string, n int64) {
	sent, told := s.around()
	switch {
	case s.holder == nil || s.at > s.until:
		if s.holder != nil {
			s.old = append(s.old, s.holder)
		}
		s.token++
		g := grant(process, n, s.token, sent, told)
		s.in.Events = append(s.in.Events, g)
		s.holder, s.until = &g, s.at+ttl.Seconds()
	case s.rng.IntN(3) == 0 && len(s.old) > 0:
		o := s.old[0]
		s.old = s.old[1:]
		e := unlock(o.Process, o.Lock, o.Token, max(sent, s.at), told, history.Lost)
		s.in.Events = append(s.in.Events, e)
	case s.rng.IntN(2) == 0:
		s.write(fmt.Sprint("op", n), max(sent, float64(s.holder.Told)/1e9), told)
	case s.rng.IntN(8) == 0: // forgotten: it will expire
		s.at += 20
	default:
		sent = max(sent, float64(s.holder.Told)/1e9)
		if sent > s.at {
			return // its holder does not know yet that it has it
		}
		result := []history.Result{history.OK, history.OK, history.Unknown}[s.rng.IntN(3)]
		s.in.Events = append(s.in.Events, unlock(s.holder.Process, s.holder.Lock, s.token, sent, told, result))
		s.holder = nil
	}
}

func (s *server) write(op string, sent, told float64) {
	if sent > s.at {
		return
	}
	h := s.holder
	result := []history.Result{history.OK, history.Unknown, history.Refused}[s.rng.IntN(3)]
	s.in.Events = append(s.in.Events, write(h.Process, h.Lock, h.Token, s.value+1, op, sent, told, result))
	if result == history.OK || result == history.Unknown && s.rng.IntN(2) == 0 {
		s.value++
		s.in.Journal = append(s.in.Journal, row(op, h.Process, h.Lock, h.Token, s.value))
		s.in.Counters["k"] = s.value
	}
}

// A correct history passes, whatever it is; the same with one false grant in it does not.
func FuzzACorrectHistoryPasses(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		in := simulate(rng)
		if r := All(in); len(r.Violations) > 0 {
			t.Fatalf("seed %d: %d events: %+v", seed, len(in.Events), r.Violations)
		}
		for _, e := range in.Events {
			if e.Kind == history.Grant {
				e.Process = "false"
				in.Events = append(in.Events, e)
				break
			}
		}
		if r := All(in); len(r.Violations) == 0 {
			t.Fatalf("seed %d: the false grant was not seen", seed)
		}
	})
}
