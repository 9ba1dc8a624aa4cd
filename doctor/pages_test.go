package doctor_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/doctor"
)

// The page has each check under a heading of its own, in their order, and no other.
func TestThePageHasEachCheck(t *testing.T) {
	page, err := os.ReadFile("../docs/operations/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^### `(.*)`\n\n[A-Z]").FindAllSubmatch(page, -1) {
		got = append(got, string(m[1]))
	}
	if want := doctor.IDs(); !slices.Equal(got, want) {
		t.Errorf("the page has %q, and the checks are %q", got, want)
	}
}
