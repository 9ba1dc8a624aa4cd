package main

import (
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The targets of processes.
const (
	leastHot     = 2000 // pairs per second, on PostgreSQL
	mostHotWait  = 50   // ms
	leastShare   = 0.8
	mostShare    = 1.2
	leastCrowded = 3.5
)

func (v *verdicts) processes(s settings, r *result) {
	if !s.parts[onProcesses] {
		return
	}
	for _, one := range r.scenes {
		ours := one.of(nameUpdate)
		switch {
		case one.own:
			v.atLeast(leastCrowded, ours.ratio, "%s, %d processes × %d callers: rowlock / raw statements",
				r.kind.Name, one.processes, one.goroutines)
			continue
		case r.kind.Name == "postgres" && one.processes > 2:
			v.hot(one, ours)
		}
		v.atLeast(1, ours.ratio, "%s, one key, %d processes: rowlock / polling with the raw statements at its best",
			r.kind.Name, one.processes)
	}
}

// hot judges one key of many processes.
func (v *verdicts) hot(one *scene, ours *run) {
	what := fmt.Sprintf("postgres, one key, %d processes: ", one.processes)
	if !ours.ran() {
		v.atLeast(leastHot, nil, "%spairs per second", what)
		return
	}
	rate := rig.MedianOf(ours.Rates)
	v.atLeast(leastHot, &rate, "%spairs per second", what)
	v.atMost(mostHotWait, ours.Wait(0.99).Seconds()*1e3, "%sp99 ms", what)
	least, most := ours.Shares()
	v.row(least >= leastShare && most <= mostShare, fmt.Sprintf("%.2f–%.2f", least, most),
		fmt.Sprintf("%v–%v", leastShare, mostShare), what+"each process's share, of an equal one")
}
