//go:build linux

package fight

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Plan is what a seed decides: what each worker does when, what is slowed, which worker is killed.
// How the machine schedules it cannot be replayed, so that the same seed finds the same kind of
// defect, but not at the same operation.
type Plan struct {
	Seed   uint64
	Phases []Phase
	// TTL is that of locks without one of their own; 0 is rowlock's default.
	TTL time.Duration `json:",omitempty"`
	// Rough says that the database may be away when a worker opens its clients, and that each loss is
	// recorded.
	Rough bool `json:",omitempty"`
}

// ttl is that of a lock without one of its own.
func (p *Plan) ttl() time.Duration { return cmp.Or(p.TTL, defaultTTL) }

// Phase is a part of a run. From and To are counted from the start, and on the monotonic clock
// after At.
type Phase struct {
	Name     string
	From, To int64
	Crews    []Crew
	Slow     slow
}

// Crew is some goroutines of each process that do the same.
type Crew struct {
	Name       string
	Goroutines int
	Acts       []Weight
	Keys       []string
	// Own gives each goroutine a key that no other wants.
	Own  bool
	Fair bool
}

// Weight is how often an act is chosen among others.
type Weight struct {
	Act string
	Of  int
}

// slow is what is done to servers and clients during a phase.
type slow struct {
	Renice  int           // so many threads at a time run at the lowest priority
	Idle    int           // and so many of them when nothing else wants to run
	Every   time.Duration // and others after this
	Stop    time.Duration // a server or client process is stopped for up to this long
	Between time.Duration // about this often
	Kill    time.Duration // a client process is killed about this often
	End     time.Duration // a session is ended about this often, on PostgreSQL
	Cut     int           // one in so many COMMITs of a section is cut off, on PostgreSQL
}

func (s slow) healthy() bool { return s == slow{} }

func Keys(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, i))
	}
	return list
}

// storm is 48 goroutines in each process that try and unlock ten keys, while random server threads
// are slowed: the recipe of issue 12's first defect.
func storm(goroutines int) Crew {
	return Crew{Name: "storm", Goroutines: goroutines, Acts: []Weight{{"try", 1}}, Keys: Keys("storm/", 10)}
}

// mixed is everything else that a client can do, on keys of its own and on the storm's.
func mixed(bridge bool) []Crew {
	acts := []Weight{{"try", 2}, {"lock", 4}, {"fenced", 4}, {"leave", 3}, {"all", 3}, {"short", 3}, {"hasty", 2}, {"late", 1}}
	if !bridge { // whose locks have no DoTx
		acts = append(acts, Weight{"section", 4})
	}
	crews := []Crew{
		{Name: "mixed", Goroutines: 14, Acts: acts, Keys: Keys("mixed/", 5)},
		{Name: "brink", Goroutines: 6, Acts: []Weight{{"brink", 1}}, Keys: Keys("brink/", 4)},
		{Name: "together", Goroutines: 8, Acts: []Weight{{"all", 1}}, Keys: Keys("together/", 4)},
		{Name: "rare", Goroutines: 2, Acts: []Weight{{"try", 1}, {"fenced", 1}}, Keys: Keys("rare/", 200)},
		// A bridge keeps no queue.
		{Name: "fair", Goroutines: 6, Acts: acts, Keys: Keys("fair/", 3), Fair: !bridge},
	}
	if !bridge { // whose keys cannot be shared
		crews = append(crews, readers()...)
	}
	if bridge {
		moving := []Weight{{"try", 3}, {"lock", 4}, {"fenced", 4}, {"short", 2}, {"hasty", 1}}
		crews = append(crews,
			Crew{Name: "moving", Goroutines: 12, Acts: moving, Keys: Keys(MovingPrefix, 4)},
			Crew{Name: "movers", Goroutines: 1, Acts: []Weight{{"move", 1}}, Keys: Keys(MovingPrefix, 4)})
	}
	return crews
}

// readers share keys beside writers, and end their locks in all ways: by a short deadline, after a
// Downgrade, by MaxHold and forgotten.
func readers() []Crew {
	acts := []Weight{{"shared", 3}, {"hurried", 4}, {"downgraded", 2}, {"fenced", 1}, {"section", 1}}
	return []Crew{
		{Name: "readers", Goroutines: 8, Acts: acts, Keys: Keys("readers/", 3)},
		{Name: "ends", Goroutines: 1, Acts: []Weight{{"ends", 1}}, Keys: []string{"ends/"}, Own: true},
	}
}

// calm is holders that nothing disturbs: each keeps a key of its own, with a TTL of 3 s, and runs
// one fenced transaction after the other under it, or two at once.
//
// In SQLite all writers share one lock of the file, in no order. Transactions of one lock that
// follow each other without a pause starve the renewal of another (decision 0022), so that there
// only the counters are fought for; make soak has one lock that is fenced back to back, in a file
// of its own.
func calm(db string) []Crew {
	count := Crew{Name: "count", Goroutines: 2, Acts: []Weight{{"fenced", 3}, {"lock", 1}}, Keys: Keys("calm/", 2)}
	if db == "sqlite" {
		return []Crew{count}
	}
	return []Crew{
		{Name: "steady", Goroutines: 1, Acts: []Weight{{"steady", 1}}, Keys: []string{"steady/"}, Own: true},
		{Name: "turns", Goroutines: 1, Acts: []Weight{{"turns", 1}}, Keys: []string{"turns/"}, Own: true},
		count,
	}
}

// newPlan divides the time. The storm gets much of it, because what it finds is rare: a few double
// grants in 100,000, of one wrong line in a batch.
func newPlan(s settings) Plan {
	weather := slow{Renice: 12, Every: 300 * time.Millisecond, Stop: 20 * time.Millisecond, Between: 300 * time.Millisecond}
	rough := weather
	rough.Idle, rough.Stop, rough.Kill = 4, 150*time.Millisecond, 4*time.Second
	cutting := slow{Stop: 100 * time.Millisecond, Between: 300 * time.Millisecond}
	cutting.Kill, cutting.End, cutting.Cut = 1500*time.Millisecond, 150*time.Millisecond, 60
	all := []struct {
		Phase
		share float64
	}{
		{Phase{Name: "storm", Crews: []Crew{storm(48)}, Slow: weather}, 0.2},
		{Phase{Name: "mixed", Crews: append(mixed(s.bridge), storm(12)), Slow: rough}, 0.2},
		{Phase{Name: "sections", Crews: sections(s.bridge), Slow: cutting}, 0.25},
		{Phase{Name: "calm", Crews: calm(s.db)}, 0.15},
		{Phase{Name: "corrupt", Crews: corrupt(s.bridge)}, 0.2},
	}
	if s.protects() {
		all[1].Crews = append(all[1].Crews, forgetful())
	}
	p := Plan{Seed: s.seed}
	start := int64(0)
	for _, a := range all {
		if s.phase != "" {
			if s.phase != a.Name {
				continue
			}
			a.share = 1
		}
		a.From = start
		start += int64(float64(s.length) * a.share)
		a.To = start
		p.Phases = append(p.Phases, a.Phase)
	}
	return p
}

// At sets the plan's start. The phases are copied: what a restarted worker is told has no start
// yet.
func (p *Plan) At(start int64) {
	p.Phases = slices.Clone(p.Phases)
	for i := range p.Phases {
		p.Phases[i].From += start
		p.Phases[i].To += start
	}
}

// Stream is a source of chances that the seed and its name decide.
func (p *Plan) Stream(name string, args ...any) *rand.Rand {
	return rand.New(rand.NewPCG(p.Seed, hash(fmt.Sprint(append([]any{name}, args...)...))))
}

// hash is FNV-1a: it must be the same in every process, which maphash is not.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
