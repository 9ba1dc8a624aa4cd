package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sections reads the .sql files. The tests are built with another one, which asks the hook for the
// text of each file. So a package's tests are built once, and not once for each mutant.
const (
	sections = "internal/sqlstore/sections.go"
	reads    = "fs.ReadFile(files, path)"
	hooked   = "readMutant(files, path)"
	hookFile = "internal/sqlstore/mutant.go"
)

// variable names a folder for the hook: in it, was.sql is the file that is mutated, and now.sql
// what is read in its place. The hook makes the file met when it has done so.
const variable = "ROWLOCK_MUTANT"

const hook = `package sqlstore

import (
	"io/fs"
	"os"
	"path/filepath"
)

func readMutant(files fs.FS, path string) ([]byte, error) {
	text, err := fs.ReadFile(files, path)
	folder := os.Getenv("` + variable + `")
	if folder == "" || err != nil {
		return text, err
	}
	was, err := os.ReadFile(filepath.Join(folder, "was.sql"))
	if err != nil || string(was) != string(text) {
		return text, err
	}
	if err := os.WriteFile(filepath.Join(folder, "met"), nil, 0o600); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(folder, "now.sql"))
}
`

// overlay writes the settings for go build's -overlay: the hook, and the mutant's own file if the
// mutant is in Go. m is nil for the tests that serve all mutants in .sql files.
func overlay(root, into string, m *mutant) (settings string, err error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(sections)))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), reads); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once: adapt the hook", sections, reads, n)
	}
	texts := map[string]string{
		sections: strings.Replace(string(source), reads, hooked, 1),
		hookFile: hook,
	}
	if m != nil {
		texts[m.file] = m.now
	}
	replace := make(map[string]string)
	for file, text := range texts {
		copied := filepath.Join(into, strings.ReplaceAll(file, "/", "_"))
		replace[filepath.Join(root, filepath.FromSlash(file))] = copied
		err = errors.Join(err, os.WriteFile(copied, []byte(text), 0o600))
	}
	settings = filepath.Join(into, "overlay.json")
	list, marshaled := json.Marshal(map[string]any{"Replace": replace})
	return settings, errors.Join(err, marshaled, os.WriteFile(settings, list, 0o600))
}
