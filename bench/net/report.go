package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func report(w io.Writer, s settings, all []*result) {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d, %d rounds of %s; a ratio is of times in one round\n",
		runtime.Version(), runtime.GOMAXPROCS(0), s.rounds, s.turn)
	for i, r := range all {
		if i < len(s.kinds) {
			fmt.Fprintf(w, "%s: %s\n", r.kind.Name, strings.Join(r.facts, "; "))
		}
	}
	for _, r := range all {
		head := fmt.Sprintf("%s, %s each way\tway\tmedian ms\tratio (min–max)\tround trips\t", r.kind.Name, r.delay)
		rig.Table(w, head, r.groups, lines)
	}
}

func lines(w io.Writer, g *group) {
	for i, one := range g.ways {
		ratio := "1"
		if i > 0 {
			ratio = one.ratio(g.ways[0]).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%.2f\t\n", g.title, one.name, rig.Median(one.times), ratio, rig.Median(one.trips))
	}
}
