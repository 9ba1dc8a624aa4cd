//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A statement that changes leaves its mutants behind: each text stands once where it is to change.
func TestEachMutantFitsTheSources(t *testing.T) {
	t.Chdir("../../..")
	for _, c := range append(chosen(false), chosen(true)...) {
		if _, err := c.files(); err != nil {
			t.Error(err)
		}
	}
}

// A test that has another name now would be run by none.
func TestEachTestIsThere(t *testing.T) {
	t.Chdir("../../..")
	for _, c := range rare {
		in, name, _ := strings.Cut(c.test, " ")
		files, err := filepath.Glob(filepath.Join(in, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "func "+name+"(")
		}
		if !found {
			t.Errorf("%s: no %s in %s", c.name, name, in)
		}
	}
}
