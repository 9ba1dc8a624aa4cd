package main

import (
	_ "embed"
	"slices"
	"strings"
	"text/template"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// What stands before the table of a fleet, and what after it.
var (
	//go:embed beyond.md
	beyond string
	//go:embed limits.md
	limits string
)

var texts = [2]*template.Template{
	template.Must(template.New("beyond").Parse(beyond)), template.Must(template.New("limits").Parse(limits)),
}

// The machines that there is only paper for.
const (
	fleet    = 5000 // processes
	cores    = 64
	million  = 1e6 // locks of the fleet
	renewing = 10  // seconds between two renewals with the default TTL
)

// Estimate is arithmetic on what was measured of PostgreSQL.
type Estimate struct {
	Connections, PerProcess, Memory, PerConnection string
	Waiting, WaitingMemory, OneMemory              string
	Cores, PerLease, Locks, Shared                 string
}

// beyond is the page's last word, if all that it is arithmetic on was measured.
func (p *page) beyond() {
	e, ok := estimate(p.all.Processes["postgres"], p.all.Held["postgres"])
	if !ok {
		return
	}
	p.text(texts[0], e)
	p.Table("what|how many|what it costs the primary", [][]string{
		{"connections", e.Connections + ": " + e.PerProcess + " a process", e.Memory + " GB, at " + e.PerConnection + " MB each"},
		{"more of them, if all wait", e.Waiting, e.WaitingMemory + " GB"},
		{
			"with [`Connections: 1`](../settings.md#connections), before all wait",
			"5,000, or the pool of [PgBouncer](../settings.md#behind-pgbouncer)", e.OneMemory + " GB",
		},
		{"renewals of a million locks, 200 a process", "500 statements a second", e.Cores + " cores, at " + e.PerLease + " µs a lease"},
		{
			"waits of all for one key: [polls](../waiting.md#what-a-wait-costs), and [their order](../waiting.md#the-order)",
			"1,250 statements and 1,000 writes a second", "",
		},
	})
	p.text(texts[1], e)
}

// text wraps each paragraph anew, because figures change its lines.
func (p *page) text(t *template.Template, e Estimate) {
	var filled strings.Builder
	_ = t.Execute(&filled, e) // it writes to memory, and a test runs it
	for paragraph := range strings.SplitSeq(strings.TrimSpace(filled.String()), "\n\n") {
		p.Say("%s", paragraph)
	}
}

func estimate(processes, held *Run) (e Estimate, ok bool) {
	if processes == nil || held == nil || processes.Processes == nil || held.Held == nil || len(held.Held.Crowds) == 0 {
		return e, false
	}
	few, many := processes.Processes.Crowds[0], slices.MaxFunc(processes.Processes.Crowds, func(a, b *Crowd) int { return a.Processes - b.Processes })
	most, kept := held.Held.kept()
	if !kept || many == few || len(many.Own.Memory) == 0 || len(few.Own.Memory) == 0 {
		return e, false
	}
	connections := rig.Median(many.Own.Connections)
	each := (rig.Median(many.Own.Memory) - rig.Median(few.Own.Memory)) / (connections - rig.Median(few.Own.Connections))
	perProcess := connections / float64(many.Processes)
	waiting := max(0, rig.Median(many.Shared.Connections)/float64(many.Processes)-perProcess)
	gigabytes := func(n float64) string { return paper.Number(fleet * n * each / 1e9) }
	lease := most.Server / (most.Statements * most.PerStatement) // seconds of a processor
	return Estimate{
		Connections: paper.Grouped(int64(fleet * perProcess)), PerProcess: paper.Number(perProcess),
		Memory: gigabytes(perProcess), PerConnection: paper.Number(each / 1e6), OneMemory: gigabytes(1),
		Waiting: paper.Grouped(int64(fleet * waiting)), WaitingMemory: gigabytes(waiting),
		Cores: paper.Number(million / renewing * lease), PerLease: paper.Number(lease * 1e6),
		Locks:  paper.Number(cores / lease * renewing / million),
		Shared: paper.Number(rig.Median(many.Shared.Pairs)),
	}, true
}

// kept is the largest crowd that lost nothing: of others it is not known what renewing all would cost.
func (h *Held) kept() (most Holding, ok bool) {
	for _, c := range h.Crowds {
		if c.Lost == 0 && c.Server > 0 && c.Statements > 0 {
			most, ok = c, true
		}
	}
	return most, ok
}
