package settings_test

import (
	"flag"
	"os"
	"testing"

	"github.com/rowlockdb/rowlock/internal/servertest/settings"
)

var update = flag.Bool("update", false, "write docs/server-settings.md anew")

func TestThePageHasEveryVerdict(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/server-settings.md"
	want, err := settings.Page()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s differs: go test ./internal/servertest/settings -run ThePage -update (%v)", path, err)
	}
}
