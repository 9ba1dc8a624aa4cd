//go:build linux

// Mutants attacks rowlock with one guard at a time removed from its sources, and fails unless every
// such mutant is found. It edits no file: go build -overlay reads the changed ones from a temporary
// folder.
//
//	scripts/with-servers postgres mariadb mysql etcd -- go run ./internal/attack/mutants
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	length := flag.Duration("for", 40*time.Second, "how long to attack each mutant at most")
	only := flag.String("only", "", "mutants whose name or file has this in it")
	on := flag.String("on", "", "on this database alone")
	list := flag.Bool("list", false, "say whether each mutant can still be made, and attack none")
	chaos := flag.Bool("chaos", false, "those that need a fault of make chaos, instead of those that make attack finds")
	flag.Parse()
	if err := run(*length, *only, *on, *list, *chaos); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(length time.Duration, only, on string, list, chaos bool) error {
	folder, err := os.MkdirTemp("", "rowlock-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var survived []string
	for n, m := range chosen(chaos) {
		if !strings.Contains(m.name+" "+m.file, only) {
			continue
		}
		changed, err := m.files()
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutants:", err)
			survived = append(survived, m.name+", which does not fit the sources")
		}
		if err != nil || list {
			continue
		}
		if m.test != "" {
			found, err := m.tested(filepath.Join(folder, fmt.Sprint(n)), changed)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", m.name, m.file, err)
			}
			fmt.Printf("| %s | %s | a test | %s |\n", m.name, filepath.Base(filepath.Dir(m.file)), found)
			if !found.was {
				survived = append(survived, m.name)
			}
			continue
		}
		program, err := build(filepath.Join(folder, fmt.Sprint(n)), changed, chaos)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", m.name, m.file, err)
		}
		for _, db := range m.on {
			if on != "" && on != db {
				continue
			}
			found, err := try(program, db, m, length)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", m.name, db, err)
			}
			fmt.Printf("| %s | %s %s | %s | %s |\n", m.name, filepath.Base(filepath.Dir(m.file)), m.section, db, found)
			if !found.was {
				survived = append(survived, m.name+" on "+db)
			}
		}
	}
	if len(survived) > 0 {
		return fmt.Errorf("%d not found: %s", len(survived), strings.Join(survived, "; "))
	}
	return nil
}

// files are the changed ones, by name.
func (c *control) files() (map[string]string, error) {
	texts := make(map[string]string)
	for _, m := range append([]mutant{c.mutant}, c.also...) {
		if m.file == "" {
			continue
		}
		text, err := m.make()
		if err != nil {
			return nil, err
		}
		texts[m.file] = text
	}
	return texts, nil
}

// make returns the changed file.
func (m *mutant) make() (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", fmt.Errorf("%w; run this in the repository's root", err)
	}
	whole := string(text)
	from, to := 0, len(whole)
	if m.section != "" {
		mark := "-- name: " + m.section + "\n"
		if from = strings.Index(whole, mark); from < 0 {
			return "", fmt.Errorf("%s has no section %q, which %q changes", m.file, m.section, m.name)
		}
		from += len(mark)
		if next := strings.Index(whole[from:], "-- name: "); next >= 0 {
			to = from + next
		}
	}
	if n := strings.Count(whole[from:to], m.old); n != 1 {
		return "", fmt.Errorf("%s %s has %q %d times, want once: adapt the mutant %q", m.file, m.section, m.old, n, m.name)
	}
	return whole[:from] + strings.Replace(whole[from:to], m.old, m.new, 1) + whole[to:], nil
}

// build makes the attack, or chaos, with some files replaced.
func build(folder string, texts map[string]string, chaos bool) (program string, err error) {
	settings, err := overlay(folder, texts)
	if err != nil {
		return "", err
	}
	program, source := filepath.Join(folder, "attack"), "."
	if chaos {
		source = "./chaos"
	}
	return program, compile(program, settings, source)
}

// overlay has go read some files from folder.
func overlay(folder string, texts map[string]string) (settings string, err error) {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, text := range texts {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[path] = filepath.Join(folder, fmt.Sprint(len(replace))+filepath.Base(file))
		if err := os.WriteFile(replace[path], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	settings = filepath.Join(folder, "overlay.json")
	return settings, os.WriteFile(settings, text, 0o644)
}

func compile(program, settings, source string) error {
	out, err := exec.Command("go", "-C", "internal/attack", "build", "-overlay", settings, "-o", program, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// finding is what an attack found of a mutant.
type finding struct {
	was   bool
	after float64
	kinds []string
	note  string
}

func (f finding) String() string {
	switch {
	case !f.was:
		return "SURVIVED | " + f.note
	case f.note != "":
		return f.note
	case f.after == 0:
		return "at the end | " + strings.Join(f.kinds, ", ")
	}
	return fmt.Sprintf("%.1f s | %s", f.after, strings.Join(f.kinds, ", "))
}

// try attacks. A mutant with which rowlock does not even open is found too: by its rehearsal.
func try(program, db string, m control, length time.Duration) (finding, error) {
	name, bridged := strings.CutSuffix(db, "+etcd")
	report := program + ".json"
	args := []string{"-db", name, "-for", length.String(), "-phase", m.phase, "-first", "-out", report}
	if m.faults != "" {
		args = []string{"-on", name, "-for", length.String(), "-faults", m.faults, "-server", m.server, "-first", "-out", report}
	}
	if bridged {
		args = append(args, "-bridge")
	}
	_ = os.Remove(report)
	out, err := exec.Command(program, args...).CombinedOutput()
	var status *exec.ExitError
	switch {
	case err == nil:
		return finding{note: "no violation"}, nil
	case errors.As(err, &status) && status.ExitCode() == 1:
		return read(report)
	case strings.Contains(string(out), "rowlock:"):
		return finding{was: true, note: "at Open | " + saying(out)}, nil
	}
	return finding{}, fmt.Errorf("%w: %s", err, out)
}

// read takes the result from what the attack has written.
func read(report string) (finding, error) {
	text, err := os.ReadFile(report)
	if err != nil {
		return finding{}, err
	}
	var s struct {
		FirstAfter float64
		Violations map[string]int
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return finding{}, err
	}
	f := finding{was: true, after: s.FirstAfter}
	for kind, n := range s.Violations {
		f.kinds = append(f.kinds, fmt.Sprintf("%d × %s", n, kind))
	}
	slices.Sort(f.kinds)
	return f, nil
}

// saying is the first line that rowlock has to say.
func saying(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if _, said, ok := strings.Cut(line, "rowlock: "); ok {
			return strings.TrimSpace(said)
		}
	}
	return ""
}
