package main

import (
	"testing"

	"github.com/rowlockdb/rowlock/examples/internal/program"
)

var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// It runs a second time too: on the file that it has made, and with the key free again.
func TestTheProgramOfTheReadmeRunsInAnEmptyFolderAndAgain(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		p := program.New(t, binary)
		p.Dir = folder
		out, err := p.Output()
		if want := "what tx writes is refused if the lock was taken over\n"; err != nil || string(out) != want {
			t.Fatalf("it said %q, and %s (%v)", out, p.Stderr.String(), err)
		}
	}
}
