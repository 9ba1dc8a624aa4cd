//go:build linux

package main

import "testing"

// A statement that changes leaves its mutants behind: each text stands once where it is to change.
func TestEachMutantFitsTheSources(t *testing.T) {
	t.Chdir("../../..")
	for _, c := range append(chosen(false), chosen(true)...) {
		if _, err := c.files(); err != nil {
			t.Error(err)
		}
	}
}
