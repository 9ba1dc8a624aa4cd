package main

import (
	"archive/zip"
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

const root = "../../.."

// unpublished are modules of the repository alone.
var unpublished = []string{"bench", "internal/attack", "internal/drivers", "internal/scrape"}

func TestEachModuleIsReleasedOrNot(t *testing.T) {
	out, err := exec.Command("go", "work", "edit", "-json", filepath.Join(root, "go.work")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(out, &work); err != nil {
		t.Fatal(err)
	}
	for _, u := range work.Use {
		module := strings.TrimPrefix(path.Clean(u.DiskPath), ".")
		if slices.Contains(modules, module) == slices.Contains(unpublished, module) {
			t.Errorf("%q: name it in modules, or in unpublished, and not in both", module)
		}
	}
}

// A sum of a module that changes after it would be one of nothing.
func TestAModuleIsReleasedAfterWhatItRequires(t *testing.T) {
	for i, module := range modules {
		out, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(root, module, "go.mod")).Output()
		if err != nil {
			t.Fatal(err)
		}
		var mod struct{ Require []struct{ Path string } }
		if err := json.Unmarshal(out, &mod); err != nil {
			t.Fatal(err)
		}
		for _, required := range mod.Require {
			ours := strings.Trim(strings.TrimPrefix(required.Path, figures.Module), "/")
			if isOurs(required.Path) && !slices.Contains(modules[:i], ours) {
				t.Errorf("%s is not released before %s", required.Path, module)
			}
		}
	}
}

func TestAModuleHasItsFilesAndTheLicenseAndNoOtherModules(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE": "free", "go.mod": "module m", "a.go": "package a", "inner/go.mod": "module m/inner", "inner/b/b.go": "package b",
	} {
		write(t, filepath.Join(tree, name), text)
	}
	r := &release{version: "v0.9.0", tree: tree, proxy: t.TempDir()}
	for module, want := range map[string][]string{
		"": {"LICENSE", "a.go", "go.mod"}, "inner": {"LICENSE", "b/b.go", "go.mod"},
	} {
		if err := r.publish(module); err != nil {
			t.Fatal(err)
		}
		within := path.Join(figures.Module, module)
		z, err := zip.OpenReader(filepath.Join(r.proxy, within, "@v", "v0.9.0.zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		var got []string
		for _, f := range z.File {
			got = append(got, strings.TrimPrefix(f.Name, within+"@v0.9.0/"))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("module %q has %q, want %q", module, got, want)
		}
	}
}

func TestTheChangelogGetsTheVersionOnce(t *testing.T) {
	tree := t.TempDir()
	name := filepath.Join(tree, "CHANGELOG.md")
	r := &release{version: "v0.9.0", tree: tree}
	write(t, name, "# Changelog\n\n## [Unreleased]\n\nNews.\n")
	for range 2 {
		if err := r.datedChangelog(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "## [0.9.0] - "); n != 1 || !strings.Contains(string(text), "## [Unreleased]\n\n##") {
			t.Errorf("%d sections of the version:\n%s", n, text)
		}
	}
	write(t, name, "# Changelog\n")
	if err := r.datedChangelog(); err == nil {
		t.Error("a changelog that says nothing of the version is accepted")
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
