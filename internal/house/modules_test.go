package house

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// frameworks are modules that other modules of this repository require. Whatever the root's
// go.mod lists becomes a floor for every user, also for one that imports none of it.
var frameworks = []string{
	"go.etcd.io",
	"google.golang.org/grpc",
	"github.com/grpc-ecosystem",
	"go.opentelemetry.io",
	"github.com/prometheus",
	"gorm.io",
	"github.com/uptrace/bun",
	"entgo.io/ent",
	"github.com/go-co-op/gocron",
	"github.com/robfig/cron",
	"github.com/golang-migrate",
	"github.com/caddyserver",
	"k8s.io",
	"github.com/redis",
	"github.com/bsm/redislock",
}

const mostModules = 45

func TestGoModListsNoFramework(t *testing.T) {
	t.Chdir(root)
	touchSources(t)
	required := requirements(t, "go.mod")
	for path := range required {
		if isOneOf(path, frameworks) {
			t.Errorf("go.mod lists %s: move what needs it into a module of its own (decision 0027)", path)
		}
	}
	if len(required) > mostModules {
		t.Errorf("go.mod lists %d modules, want at most %d", len(required), mostModules)
	}
}

// A module that go.work lacks cannot be built from the root; one that listImports lacks escapes the
// tables of bans_test.go.
func TestGoWorkUsesEveryModule(t *testing.T) {
	t.Chdir(root)
	used := inWork(t)
	var found []string
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (path == ".git" || path == "tools"): // tools has versions and no Go files
			return fs.SkipDir
		case e.Name() == "go.mod":
			found = append(found, filepath.ToSlash(filepath.Dir(path)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	if !slices.Equal(used, found) {
		t.Errorf("go.work uses %q, and the repository has the modules %q", used, found)
	}
	reasons := readFile(t, "docs/decisions/0027-modules.md")
	for _, dir := range found {
		if dir != "." && !strings.Contains(reasons, "`"+dir+"`") {
			t.Errorf("decision 0027 does not say why %s is a module", dir)
		}
		if dir != "bench" && !slices.Contains(listed, dir) {
			t.Errorf("imports_test.go does not list the packages of %s", dir)
		}
	}
}

// A module that requires an older version than another of go.work is tested with that one's, and
// not with what its users get. And what both need is built twice, once for each.
func TestModulesRequireWhatTheyAreTestedWith(t *testing.T) {
	t.Chdir(root)
	out, err := exec.Command("go", "list", "-m", "-e", "-f", "{{.Path}} {{.Version}}", "all").Output()
	if err != nil {
		t.Fatal(err)
	}
	selected := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		selected[path] = version
	}
	for _, dir := range inWork(t) {
		for path, version := range requirements(t, filepath.Join(dir, "go.mod")) {
			if tested := selected[path]; tested != "" && version != tested {
				t.Errorf("%s requires %s %s and is tested with %s: go -C %s get %s@%s",
					dir, path, version, tested, dir, path, tested)
			}
		}
	}
}

// go.work lends a module what another requires. Its users have no go.work: theirs must build with
// what its own go.mod lists, and so must its tests.
func TestModulesRequireWhatTheirTestsImport(t *testing.T) {
	t.Chdir(root)
	for _, dir := range inWork(t) {
		cmd := exec.Command("go", "-C", dir, "list", "-test", "-deps", "./...")
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			t.Errorf("in %s: %v, cured by go -C %s mod tidy -e\n%s", dir, err, dir, said.String())
		}
	}
}

// older are versions of frameworks that an application may have for reasons of its own.
var older = map[string]string{
	"github.com/prometheus/client_golang": "v1.20.5",
	"go.opentelemetry.io/otel":            "v1.34.0",
	"google.golang.org/grpc":              "v1.70.0",
}

// The application imports every public package of the root. One that stands on goose would show
// here: its go.mod lists the drivers of a dozen databases, and with them a newer grpc and otel.
func TestAnApplicationKeepsItsVersions(t *testing.T) {
	t.Chdir(root)
	app := newApplication(t)
	app.require(t, older)
	app.run(t, "list", "-m", "all") // without rowlock: does the module proxy serve the versions?

	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	app.run(t, "mod", "edit",
		"-require="+module+"@v0.0.0-00010101000000-000000000000", "-replace="+module+"="+root)
	app.imports(t, publicOfRoot(t))
	app.run(t, "list", "-deps", ".") // adds what the imports need to go.mod
	kept := requirements(t, filepath.Join(app.dir, "go.mod"))
	if _, ok := kept["github.com/jackc/pgx/v5"]; !ok {
		t.Fatalf("go list has added nothing to the application's go.mod, which proves nothing: %v", kept)
	}
	for path, want := range older {
		if got := kept[path]; got != want {
			t.Errorf("%s: with rowlock the application's go.mod lists %s, want %s", path, got, want)
		}
		if got := strings.TrimSpace(app.run(t, "list", "-m", "-f", "{{.Version}}", path)); got != want {
			t.Errorf("%s: with rowlock the application is built with %s, want %s", path, got, want)
		}
	}
}

// inWork are the folders of the modules that go.work names.
func inWork(t *testing.T) (used []string) {
	t.Helper()
	var work struct {
		Use []struct{ DiskPath string }
	}
	goJSON(t, &work, "work", "edit", "-json", "go.work") // named, for GOWORK=off
	for _, u := range work.Use {
		used = append(used, filepath.ToSlash(filepath.Clean(u.DiskPath)))
	}
	slices.Sort(used)
	return used
}

func publicOfRoot(t *testing.T) []string {
	t.Helper()
	var public []string
	others := slices.DeleteFunc(inWork(t), func(module string) bool { return module == "." })
	for path := range listImports(t) {
		if figures.IsPublic(path) && !isOneOf(strings.TrimPrefix(path, "./"), others) {
			public = append(public, module+strings.TrimPrefix(path, "."))
		}
	}
	slices.Sort(public)
	for _, one := range []string{"/paxosbridge", "/schema"} {
		if !slices.Contains(public, module+one) {
			t.Fatalf("the public packages lack %s: %q", one, public)
		}
	}
	return public
}

// application is a module in a folder of its own.
type application struct{ dir string }

func newApplication(t *testing.T) application {
	t.Helper()
	app := application{t.TempDir()}
	app.write(t, "go.mod", "module example.com/application\n\ngo 1.26.0\n")
	return app
}

func (a application) require(t *testing.T, versions map[string]string) {
	t.Helper()
	for path, version := range versions {
		a.run(t, "mod", "edit", "-require="+path+"@"+version)
	}
}

func (a application) imports(t *testing.T, paths []string) {
	t.Helper()
	text := "package main\n\nimport (\n"
	for _, path := range paths {
		text += "\t_ \"" + path + "\"\n"
	}
	a.write(t, "main.go", text+")\n\nfunc main() {}\n")
}

func (a application) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run calls go in the application. It needs go.mod files that a build of rowlock does not; a
// machine without them skips the test aloud, and CI fails.
func (a application) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, said.String())
	default:
		t.Skipf("SKIPPED, NOT TESTED WITH OLDER FRAMEWORKS: go %s: %v\n%s",
			strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

// requirements are the modules that a go.mod lists, direct and indirect, with their versions.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	var mod struct {
		Require []struct{ Path, Version string }
	}
	goJSON(t, &mod, "mod", "edit", "-json", file)
	required := make(map[string]string)
	for _, r := range mod.Require {
		required[r.Path] = r.Version
	}
	return required
}

func goJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}
