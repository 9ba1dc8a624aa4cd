package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// older are versions of frameworks that an application may have for reasons of its own.
var older = []string{
	"github.com/prometheus/client_golang@v1.20.5", "go.opentelemetry.io/otel@v1.34.0", "google.golang.org/grpc@v1.70.0",
}

// try does in folder what strangers do with a release.
func (r *release) try(ctx context.Context, folder string) error {
	libraries := slices.DeleteFunc(slices.Clone(modules), func(m string) bool {
		return strings.HasPrefix(m, "cmd/") || strings.HasPrefix(m, "examples")
	})
	steps := []trial{
		{"first", func() error { return r.first(ctx, filepath.Join(folder, "first")) }},
		{"sums", func() error { return r.sums(ctx, filepath.Join(folder, "sums")) }},
		{"sizes", func() error { return r.sizes(ctx, filepath.Join(folder, "sizes")) }},
	}
	for _, m := range libraries {
		steps = append(steps,
			trial{"get", func() error { return r.get(ctx, filepath.Join(folder, "empty", m), m) }},
			trial{"get", func() error { return r.get(ctx, filepath.Join(folder, "older", m), m, older...) }})
	}
	bin := filepath.Join(folder, "bin")
	for _, command := range []string{"cmd/rowlock", "cmd/rowlockvet", "examples/...", "examples/stacks/..."} {
		steps = append(steps, trial{"install", func() error { return r.install(ctx, bin, command) }})
	}
	steps = append(steps,
		trial{"api", func() error { return r.api(ctx) }},
		trial{"install", func() error { return r.saysItsVersion(ctx, bin) }},
		trial{"install", func() error { return r.runs(ctx, bin, "quickstart") }},
		trial{"install", func() error { return r.licensed(ctx, bin) }})
	return r.all(steps)
}

// trial is one thing that strangers do. Those of a name belong together.
type trial struct {
	name string
	do   func() error
}

// all does those that are wanted: each, unless one name is.
func (r *release) all(steps []trial) error {
	done := 0
	for _, s := range steps {
		if r.only != "" && s.name != r.only {
			continue
		}
		if err := s.do(); err != nil {
			return err
		}
		done++
	}
	if done == 0 {
		return fmt.Errorf("no trial has the name %q", r.only)
	}
	return nil
}

// get adds a module to an application that requires some others already, and imports all of it.
func (r *release) get(ctx context.Context, folder, module string, others ...string) error {
	m := path.Join(figures.Module, module)
	what := "go get " + m
	if len(others) > 0 {
		what += " beside older frameworks"
	}
	return step(what, func() error {
		if err := application(folder, ""); err != nil {
			return err
		}
		for _, wanted := range append(slices.Clone(others), m+"@"+r.version) {
			if _, err := r.command(ctx, folder, "go", "get", wanted); err != nil {
				return err
			}
		}
		list, err := r.command(ctx, folder, "go", "list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, m+"/...")
		if err != nil {
			return err
		}
		text := "package main\n\nimport (\n"
		for _, imported := range strings.Fields(list) {
			if !strings.Contains(imported, "/internal/") {
				text += "\t_ \"" + imported + "\"\n"
			}
		}
		if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(text+")\n\nfunc main() {}\n"), 0o600); err != nil {
			return err
		}
		if _, err := r.command(ctx, folder, "go", "vet", "."); err != nil {
			return err
		}
		if module != "" { // it is there for a framework, and may raise it
			return nil
		}
		return r.keeps(ctx, folder, others)
	})
}

// application is a module that requires nothing yet. A program may be written later.
func application(folder, program string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	files := map[string]string{"go.mod": "module example.com/application\n\ngo 1.26.0\n", "main.go": program}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// keeps fails if the version of a framework was raised.
func (r *release) keeps(ctx context.Context, folder string, versions []string) error {
	for _, wanted := range versions {
		name, v, _ := strings.Cut(wanted, "@")
		got, err := r.command(ctx, folder, "go", "list", "-m", "-f", "{{.Version}}", name)
		if err != nil {
			return err
		}
		if got = strings.TrimSpace(got); got != v {
			return fmt.Errorf("an application on %s now has %s", wanted, got)
		}
	}
	return nil
}

func (r *release) install(ctx context.Context, bin, command string) error {
	what := path.Join(figures.Module, command) + "@" + r.version
	return step("go install "+what, func() error {
		if err := os.MkdirAll(bin, 0o755); err != nil {
			return err
		}
		// In no module, as a stranger does it.
		_, err := r.command(ctx, bin, "env", "GOBIN="+bin, "GOFLAGS=-trimpath", "go", "install", what)
		return err
	})
}

func (r *release) saysItsVersion(ctx context.Context, bin string) error {
	return step("rowlock version", func() error {
		said, err := r.command(ctx, bin, filepath.Join(bin, "rowlock"), "version")
		if err == nil && !strings.Contains(said, r.version) {
			err = fmt.Errorf("it says %q", said)
		}
		return err
	})
}

func (r *release) runs(ctx context.Context, bin, example string) error {
	return step("run the example "+example, func() error {
		_, err := r.command(ctx, bin, filepath.Join(bin, example))
		return err
	})
}

// licensed fails if a module that is a part of a binary has no license.
func (r *release) licensed(ctx context.Context, bin string) error {
	return step("each part of rowlock and rowlockvet has a license", func() error {
		said, err := r.command(ctx, bin, "go", "version", "-m", "rowlock", "rowlockvet")
		if err != nil {
			return err
		}
		var missing []error
		for line := range strings.Lines(said) {
			if part := strings.Fields(line); len(part) > 2 && part[0] == "dep" && !r.hasLicense(ctx, part[1], part[2]) {
				missing = append(missing, fmt.Errorf("%s %s has none", part[1], part[2]))
			}
		}
		return errors.Join(missing...)
	})
}

func (r *release) hasLicense(ctx context.Context, module, version string) bool {
	text, err := r.command(ctx, r.cache, "go", "mod", "download", "-json", module+"@"+version)
	var at struct{ Dir string }
	if err != nil || json.Unmarshal([]byte(text), &at) != nil {
		return false
	}
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "License*"} {
		if found, _ := filepath.Glob(filepath.Join(at.Dir, pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

func (r *release) api(ctx context.Context) error {
	return step("the public API is the one that is written down", func() error {
		// It looks at the packages of all modules together, so that it needs go.work.
		_, err := r.command(ctx, r.tree, "env", "GOWORK=", "GOFLAGS=-trimpath", "go", "test", "-run", "API", "./internal/house")
		return err
	})
}
