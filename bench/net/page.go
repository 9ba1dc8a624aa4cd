package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// page is what users read.
type page struct {
	paper.Page
	s   settings
	all []*result
}

// publish writes the page and its pictures.
func publish(s settings, all []*result) error {
	if err := draw(s, all); err != nil {
		return err
	}
	p := &page{s: s, all: all}
	p.begin()
	p.chapter("What a fenced section costs", pictureOfSections, "A section locks a key, writes a row, and proves in the "+
		"same transaction that it still holds the key. SELECT FOR UPDATE in the same transaction does without the proof, and "+
		"excludes others only for as long as the transaction lasts. redislock cannot take part in the transaction: nothing "+
		"keeps a late holder from writing.", onSection, onPgx)
	p.chapter("What waiting costs", pictureOfWaiting, fmt.Sprintf("One process has the key, another has asked for it for %s. The "+
		"time is from the call that releases the key until the other process has it. The round trips are those of the release "+
		"and of the whole call that waited, its registration and its polls among them. redislock's waiter polls with the pauses that "+
		"its documentation recommends.", waits), onHandOver)
	p.Say("What waiters cost a server that nothing happens on is in [waiting](../waiting.md#what-a-wait-costs), and how many of a " +
		"thousand are served a second in [the results](results.md#1000-waiters-for-one-key).")
	p.chapter("What the network costs", pictureOfNetwork, "A call waits for its round trips. Where the server is a network away, "+
		"that is most of its time. A round trip is an answer that came after something was sent; BEGIN and COMMIT have theirs. "+
		"The first table is of a round trip alone, and so of the distance; the last of what a process does once: a client looks at "+
		"the server and its tables, and tries each statement on a key of its own.", onTrip, onPair, onFive, onOnce, onOpen)
	p.Say("What becomes of all this when tables, fleets and held locks grow is in [how it grows](growth.md).")
	p.end()
	text := strings.TrimSpace(p.String()) + "\n"
	return os.WriteFile(filepath.Join(s.out, "costs.md"), []byte(text), 0o644)
}

func (p *page) begin() {
	p.Say("# What it costs")
	p.Say("What a fenced section, a wait and the network cost, beside what does the same without rowlock. Servers are %s away, "+
		"each way.", distances(p.s.delays))
	p.Say("Made by `make bench-net` on %s, of commit `%s`; a run on a quiet machine replaces all figures.",
		time.Now().Format("2 January 2006"), p.s.commit)
	p.Say("**Compare the ratios and the round trips, not the milliseconds.** One machine runs the servers, the network and what "+
		"measures them, and may run more. A ratio is of the times in one round, the median of %d, with the least and the "+
		"most. Round trips are counted, and load hardly changes them.", p.s.rounds)
	if p.s.short {
		p.Say("**This was `-short`: it shows that everything runs. The figures mean nothing.**")
	}
}

func distances(delays []time.Duration) string {
	var all []string
	for _, d := range delays {
		all = append(all, fmt.Sprintf("%v ms", d.Seconds()*1e3))
	}
	return strings.Join(all, " and ")
}

// chapter is a picture and the tables behind it.
func (p *page) chapter(title string, c paper.Chart, about string, groups ...string) {
	p.Say("## %s", title)
	p.Say("%s", about)
	p.Say("![%s](%s/%s)", c.Title, folder, c.File)
	p.Say("The picture is from %s.", distances(p.s.delays[len(p.s.delays)-1:]))
	head := "||"
	for _, d := range p.s.delays {
		head += fmt.Sprintf("ms, from %v ms|ratio (min–max)|", d.Seconds()*1e3)
	}
	for _, g := range groups {
		if rows := p.rows(g); rows != nil {
			p.Say("%s:", strings.ToUpper(g[:1])+g[1:])
			p.Table(head+"round trips", rows)
		}
	}
}

// rows are those of a group: a row for each database and way.
func (p *page) rows(title string) (rows [][]string) {
	for _, near := range from(p.all, p.s.delays[0]) {
		for _, g := range near.groups {
			for i := range g.ways {
				if g.title == title {
					rows = append(rows, p.row(near.kind.Name, g, i))
				}
			}
		}
	}
	return rows
}

// row is that of a way from each distance, with the round trips from the first.
func (p *page) row(database string, near *group, i int) []string {
	row := []string{paper.Title(database), near.ways[i].name}
	for _, d := range p.s.delays {
		for _, r := range from(p.all, d) {
			if r.kind.Name != database {
				continue
			}
			to, w := r.of(near.title, near.ways[0].name), r.of(near.title, near.ways[i].name)
			ratio := "1"
			if i > 0 {
				ratio = w.ratio(to).String()
			}
			row = append(row, paper.Number(rig.Median(w.times)), ratio)
		}
	}
	return append(row, paper.Number(rig.Median(near.ways[i].trips)))
}

func (p *page) end() {
	p.Say("## How it was measured")
	p.Say("In each of %d rounds every way has a turn of %s with one caller, in an order that changes.", p.s.rounds, p.s.turn)
	p.Item("machine: %s", strings.Join(paper.Machine(), "; "))
	p.Item("load of that machine when it began, of all that ran there: %s", p.s.load)
	p.Item("network: a process through which all connections go keeps what passes for so long, each way; its threads oversleep " +
		"by a tenth of a millisecond")
	for _, r := range from(p.all, p.s.delays[0]) {
		p.Item("%s: %s", r.kind.Name, strings.Join(r.facts, "; "))
	}
	p.Line("")
}
