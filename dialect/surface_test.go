package dialect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// most is how many names dialect and its rooms may export: functions, constants, types, their
// fields and their methods.
const most = 60

// Users need a few names of these packages, to say which database they have. What rowlock's own
// packages share belongs to internal/sqlstore. TestPublicAPI keeps the lists true.
func TestThePublicSurfaceIsSmall(t *testing.T) {
	lists, err := filepath.Glob("../testdata/api/dialect/*.txt")
	if err != nil || len(lists) != 3 {
		t.Fatal(lists, err)
	}
	exported := 0
	for _, list := range append(lists, "../testdata/api/dialect.txt") {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, ", unexported ") {
				exported++
			}
		}
	}
	if exported < 10 || exported > most {
		t.Errorf("%d exported names, want 10 to %d", exported, most)
	}
}
