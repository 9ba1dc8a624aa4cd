package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without it the race detector crashes now and then, on a busy machine more often.
func TestTestsInBubblesRunOneGoroutineAtATime(t *testing.T) {
	uses, safe := make(map[string]bool), make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !isTest(path) {
			return err
		}
		text, err := os.ReadFile(path)
		dir := filepath.Dir(path)
		uses[dir] = uses[dir] || strings.Contains(string(text), "\n\t\"testing/synctest\"\n")
		safe[dir] = safe[dir] || strings.Contains(string(text), "bubbles.Main(m)") ||
			strings.Contains(string(text), "adaptertest.Main(m")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for dir := range uses {
		switch {
		case !uses[dir]:
			continue
		case !safe[dir]:
			t.Errorf("%s has tests that use testing/synctest: have its TestMain call bubbles.Main or adaptertest.Main", dir)
		}
		n++
	}
	if n < 20 {
		t.Errorf("%d folders have tests that use testing/synctest: this test looks for them in the wrong way", n)
	}
}
