package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
)

// folder is that of the pictures and the figures, beside the page.
const folder = "growth"

// figures are all that is known, from this run or from an earlier one.
type figures struct{ Keys, Processes, Held Scenes }

// Scenes are the runs of a scene, by database.
type Scenes map[string]*Run

// Run is one scene on one database, and what it ran on.
type Run struct {
	On, Commit, Load string
	Machine, Facts   []string
	Failed           string     `json:",omitempty"`
	Keys             *Keys      `json:",omitempty"`
	Processes        *Processes `json:",omitempty"`
	Held             *Held      `json:",omitempty"`
}

// begin is a run that begins now. The load is that of the machine without it.
func (s settings) begin(facts []string) *Run {
	return &Run{
		On: time.Now().Format("2 January 2006"), Commit: s.commit, Load: s.load, Machine: paper.Machine(), Facts: facts,
	}
}

// enter takes down a run, and returns its error. One that failed is no less a result.
func (all *Scenes) enter(database string, r *Run, err error) error {
	if err != nil {
		r.Failed = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if *all == nil {
		*all = make(Scenes)
	}
	(*all)[database] = r
	return err
}

func (all *figures) file(out string) string { return filepath.Join(out, folder, "figures.json") }

// read reads those of an earlier run, if there was one.
func (all *figures) read(out string) error {
	text, err := os.ReadFile(all.file(out))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, all)
}

func (all *figures) write(out string) error {
	if err := os.MkdirAll(filepath.Join(out, folder), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(all.file(out), append(text, '\n'), 0o644)
}
