package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// record is a file with a line for each mutant that was tried: -log. The next run with the same
// file does not try again what was killed, so that a run of hours can be cut into short ones.
type record struct {
	mu   sync.Mutex
	file *os.File
	// known has the last line of each mutant.
	known map[string]outcome
}

// openRecord reads a record and appends to it. An empty path is a record that is not kept.
func openRecord(path string) (*record, error) {
	r := &record{known: make(map[string]outcome)}
	if path == "" {
		return r, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 4); len(parts) == 4 {
			r.known[parts[0]] = outcome{kind: parts[1], by: parts[3]}
		}
	}
	r.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return r, err
}

// id is what a record knows a mutant by. A statement that changes makes other mutants, which
// have to be tried, so the name alone is not enough.
func (m *mutant) id() string {
	sum := sha256.Sum256([]byte(m.name() + "\n" + m.part))
	return hex.EncodeToString(sum[:8])
}

func (r *record) of(m *mutant) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[m.id()]
}

func (r *record) note(m *mutant, o outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[m.id()] = o
	if r.file == nil {
		return nil
	}
	said := strings.Join(strings.Fields(o.by), " ")
	_, err := fmt.Fprintf(r.file, "%s\t%s\t%s\t%s\n", m.id(), o.kind, m.name(), said)
	return err
}

// left are the mutants that a run has to try: not those that the record has as killed, nor those
// that may survive, unless all are wanted.
func (c *choice) left(mutants []mutant, r *record, why []explained) (out []mutant) {
	for i := range mutants {
		m := &mutants[i]
		switch {
		case r.of(m).kind == killed:
		case !c.explained && explains(why, m) != "":
		default:
			out = append(out, *m)
		}
	}
	return out
}
