package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// modules are what a release publishes, each after what it requires. A module's go.sum has the sums
// of those before, so that another order would publish sums of nothing.
var modules = []string{
	"", "adapters/certmagic", "adapters/client-go", "adapters/gocron", "adapters/goose", "adapters/migrate",
	"adapters/robfig", "promrowlock", "otelrowlock", "paxosbridge/etcd", "shedlock", "transition", "wlock",
	"cmd/rowlockvet", "cmd/rowlock", "examples", "examples/stacks",
}

// release is a version of all modules.
type release struct {
	version      string
	tree         string  // the repository's files
	proxy, cache string  // folders of modules: what this release publishes, and what was fetched
	only         string  // the name of the trials, "" for all
	busy         float64 // the machine's load before
}

// environment has the go command see this release as it will see the published one.
func (r *release) environment() []string {
	return []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "GOMODCACHE=" + r.cache, "GONOSUMDB=" + figures.Module,
		"GOPROXY=file://" + filepath.ToSlash(r.proxy) + "," + upstream(),
	}
}

// upstream is where modules of others come from.
func upstream() string {
	out, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		return "direct"
	}
	return strings.TrimSpace(string(out))
}

// make sets the versions of all modules and fills the proxy with them.
func (r *release) make(ctx context.Context) error {
	if err := r.datedChangelog(); err != nil {
		return err
	}
	for _, m := range modules {
		err := step("make "+path.Join(figures.Module, m), func() error {
			if err := r.require(ctx, m); err != nil {
				return err
			}
			return r.publish(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var unreleased = regexp.MustCompile(`(?m)^## \[Unreleased\]$`)

// datedChangelog gives what is not released yet the version as its title.
func (r *release) datedChangelog() error {
	name := filepath.Join(r.tree, "CHANGELOG.md")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.version, "v")
	if strings.Contains(string(text), "\n## ["+number+"]") {
		return nil
	}
	title := fmt.Sprintf("## [Unreleased]\n\n## [%s] - %s", number, time.Now().UTC().Format(time.DateOnly))
	dated := unreleased.ReplaceAllString(string(text), title)
	if dated == string(text) {
		return errors.New("CHANGELOG.md has no section [Unreleased], and none of " + number)
	}
	return os.WriteFile(name, []byte(dated), 0o644)
}

// require has a module require this version of ours instead of a folder, and its go.sum know it.
func (r *release) require(ctx context.Context, module string) error {
	folder := filepath.Join(r.tree, module)
	text, err := r.command(ctx, folder, "go", "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var mod struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal([]byte(text), &mod); err != nil {
		return err
	}
	edit := []string{"mod", "edit"}
	for _, required := range mod.Require {
		if isOurs(required.Path) {
			edit = append(edit, "-require="+required.Path+"@"+r.version)
		}
	}
	for _, replaced := range mod.Replace {
		edit = append(edit, "-dropreplace="+replaced.Old.Path)
	}
	if len(edit) == 2 {
		return nil
	}
	if _, err := r.command(ctx, folder, "go", edit...); err != nil {
		return err
	}
	_, err = r.command(ctx, folder, "go", "list", "-deps", "-test", "./...")
	return err
}

func isOurs(module string) bool {
	return module == figures.Module || strings.HasPrefix(module, figures.Module+"/")
}
