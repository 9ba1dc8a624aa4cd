package rig

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress says on stderr how far the run is, if that is a terminal. In a file, a log of CI among
// them, each step would be one more copy of the bar.
type Progress struct {
	bar  *progressbar.ProgressBar
	part bool // of a step
}

// NewProgress has so many steps before it.
func NewProgress(steps int) *Progress {
	return newProgress(steps, os.Stderr, term.IsTerminal(int(os.Stderr.Fd())))
}

func newProgress(steps int, out io.Writer, terminal bool) *Progress {
	bar := progressbar.NewOptions(steps, progressbar.OptionSetWriter(out), progressbar.OptionSetVisibility(terminal),
		progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	return &Progress{bar: bar}
}

// Say says what is done now.
func (p *Progress) Say(database, what string) {
	p.bar.Describe(fmt.Sprintf("%-8s %-20s", database, what))
}

// Step counts a step as done.
func (p *Progress) Step() {
	if !p.part {
		_ = p.bar.Add(1)
	}
}

// Within is the progress of what is one step of p in all: its own steps do not count.
func (p *Progress) Within() *Progress { return &Progress{p.bar, true} }

// Done removes the bar.
func (p *Progress) Done() { _ = p.bar.Finish() }
