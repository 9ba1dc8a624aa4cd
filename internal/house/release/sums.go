package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// sumsFile has what rowlock may add to an application, in the form of gain.String.
const sumsFile = "internal/house/release/sums.txt"

var dialects = []string{"postgres", "mysql", "sqlite"}

// gain is what an application has that locks on one database, and on nothing else.
type gain struct {
	database     string
	got, sources int // lines of go.sum after go get and go build, and those that are no go.mod's
	tidied, more int // the same after go mod tidy, which also loads the tests of what is imported
	modules      int // of go list -m all
}

func (g gain) String() string {
	return fmt.Sprintf("%s %d %d %d %d %d", g.database, g.got, g.sources, g.tidied, g.more, g.modules)
}

// over reports whether one of g's figures is above its bound.
func (g gain) over(bound gain) bool {
	return g.got > bound.got || g.sources > bound.sources || g.tidied > bound.tidied ||
		g.more > bound.more || g.modules > bound.modules
}

// bounds reads what the file says, by database.
func bounds(root string) (map[string]gain, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(sumsFile)))
	if err != nil {
		return nil, err
	}
	all := make(map[string]gain)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var g gain
		_, err := fmt.Sscan(line, &g.database, &g.got, &g.sources, &g.tidied, &g.more, &g.modules)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", sumsFile, line, err)
		}
		all[g.database] = g
	}
	return all, nil
}

// sums fails if an application's go.sum, or its graph of modules, is larger than it may be.
func (r *release) sums(ctx context.Context, folder string) error {
	may, err := bounds(r.tree)
	if err != nil {
		return err
	}
	var failed []error
	for _, database := range dialects {
		g := gain{database: database}
		err := step("go.sum of an application with locks on "+database, func() error {
			return r.measure(ctx, filepath.Join(folder, database), &g)
		})
		if err != nil {
			return err
		}
		fmt.Printf("  go get: %d lines, %d of them sources; go mod tidy: %d, %d; go list -m all: %d\n",
			g.got, g.sources, g.tidied, g.more, g.modules)
		if g.over(may[database]) {
			failed = append(failed, fmt.Errorf("%s has %q, and may have %q", sumsFile, g, may[database]))
		}
	}
	return errors.Join(failed...)
}

func (r *release) measure(ctx context.Context, folder string, g *gain) error {
	text := "package main\n\nimport (\n"
	for _, p := range []string{"", "/schema", "/dialect/" + g.database} {
		text += "\t_ \"" + figures.Module + p + "\"\n"
	}
	if err := application(folder, text+")\n\nfunc main() {}\n"); err != nil {
		return err
	}
	for _, args := range [][]string{{"get", figures.Module + "@" + r.version}, {"list", "-deps", "."}} {
		if _, err := r.command(ctx, folder, "go", args...); err != nil {
			return err
		}
	}
	var err error
	if g.got, g.sources, err = lines(folder); err != nil {
		return err
	}
	if _, err := r.command(ctx, folder, "go", "mod", "tidy"); err != nil {
		return err
	}
	if g.tidied, g.more, err = lines(folder); err != nil {
		return err
	}
	said, err := r.command(ctx, folder, "go", "list", "-m", "all")
	g.modules = strings.Count(said, "\n")
	return err
}

// lines counts those of go.sum, and those of sources, which are downloaded.
func lines(folder string) (all, sources int, err error) {
	text, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	all = strings.Count(string(text), "\n")
	return all, all - strings.Count(string(text), "/go.mod "), err
}
