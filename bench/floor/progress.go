package main

import (
	"fmt"
	"os"

	"github.com/schollz/progressbar/v3"
)

// progress says on stderr how far the run is.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(s settings) *progress {
	steps := 0
	if s.rates {
		steps += len(s.goroutines) * s.rounds * 3
	}
	if s.allocs {
		steps += 3
	}
	if s.held > 0 {
		steps += 1 + watched
	}
	return &progress{progressbar.NewOptions(steps*len(s.kinds), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))}
}

func (p *progress) say(database, what string) {
	p.bar.Describe(fmt.Sprintf("%-8s %-20s", database, what))
}

func (p *progress) step() { _ = p.bar.Add(1) }

func (p *progress) done() { _ = p.bar.Finish() }
