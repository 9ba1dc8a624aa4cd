package house

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rowlockdb/rowlock"

// imports is a package as go list shows it, without its tests.
type imports struct {
	ImportPath    string
	Imports, Deps []string
}

func TestImportsRunOneWay(t *testing.T) {
	t.Chdir(root)
	all := listImports(t)
	for _, ban := range bans {
		p, ok := all[ban.pkg]
		if !ok {
			t.Errorf("%s is not there any more: take it off the list, or mend the list", ban.pkg)
			continue
		}
		for _, dep := range p.Deps {
			if isBanned(dep, ban.not) && !isOneOf(dep, expand(ban.except)) {
				t.Errorf("%s must not import %s: %s", ban.pkg, dep, ban.because)
			}
		}
	}
	for _, only := range onlies {
		importers := 0
		for path, p := range all {
			if !slices.ContainsFunc(p.Imports, func(i string) bool { return isIn(i, only.pkg) }) {
				continue
			}
			importers++
			if !isOneOf(path, only.in) {
				t.Errorf("%s must not import %s, which is for %q: %s", path, only.pkg, only.in, only.because)
			}
		}
		if importers == 0 {
			t.Errorf("no package imports %s any more: take it off the list", only.pkg)
		}
	}
	for path, p := range all {
		for _, i := range p.Imports {
			if isOneOf(i, groups["programs"]) && !isOneOf(path, groups["programs"]) {
				t.Errorf("%s must not import %s, which is a program", path, i)
			}
		}
	}
}

// listed are the modules whose packages the tables name. One go list a module works with and
// without go.work; ./... in the root enters none of the others.
var listed = []string{
	".", "adapters/certmagic", "adapters/client-go", "adapters/gocron", "adapters/goose", "adapters/migrate", "adapters/robfig",
	"cmd/rowlock", "cmd/rowlockvet", "examples", "examples/stacks", "internal/attack", "internal/drivers", "internal/scrape",
	"otelrowlock", "paxosbridge/etcd", "promrowlock", "shedlock", "transition", "wlock",
}

// listImports returns the packages of the listed modules. Their paths, and those of one another,
// begin with "." instead of the root's module path.
func listImports(t *testing.T) map[string]imports {
	t.Helper()
	all := make(map[string]imports)
	touchSources(t)
	for _, dir := range listed {
		cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", dir, err)
		}
		addImports(t, all, string(out))
	}
	return all
}

// touchSources reads every folder, so that go test sees that the result depends on the files in
// them. go test does not see what the go command reads, and would repeat its last result.
func touchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func addImports(t *testing.T, all map[string]imports, list string) {
	t.Helper()
	short := func(path *string) {
		if rest, ok := strings.CutPrefix(*path, module); ok {
			*path = "." + rest
		}
	}
	for dec := json.NewDecoder(strings.NewReader(list)); ; {
		var p imports
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		short(&p.ImportPath)
		for _, list := range [][]string{p.Imports, p.Deps} {
			for i := range list {
				short(&list[i])
			}
		}
		all[p.ImportPath] = p
	}
}

func isBanned(dep, what string) bool {
	switch list, ok := groups[what]; {
	case ok:
		return isOneOf(dep, list)
	case what == "anything else":
		first, _, _ := strings.Cut(dep, "/")
		return strings.Contains(first, ".") // all but the standard library
	}
	return isIn(dep, what)
}

// expand puts the packages of a group in the place of its name.
func expand(list []string) (paths []string) {
	for _, p := range list {
		if group, ok := groups[p]; ok {
			paths = append(paths, group...)
		} else {
			paths = append(paths, p)
		}
	}
	return paths
}

func isOneOf(path string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return isIn(path, p) })
}

// isIn says whether path is parent or below it. "." has nothing below it.
func isIn(path, parent string) bool {
	return path == parent || parent != "." && strings.HasPrefix(path, parent+"/")
}
