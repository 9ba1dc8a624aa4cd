package figures

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Package is a package of this repository.
type Package struct {
	ImportPath, Dir  string
	Name             string
	GoFiles, Imports []string
	EmbedFiles       []string

	lines int
	sql   map[string]int // lines of each file
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// short is its path below the root module's.
func (p *Package) short() string {
	if p.ImportPath == Module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, Module+"/")
}

// tree is what the repository has of packages, those before others that these import.
type tree struct{ packages []*Package }

// asideModules have nothing of the product. Adapters and neighbours have figures of their own.
var asideModules = append([]string{"adapters", "bench", "examples", "internal", "tools", "torture"}, neighbours...)

// IsPublic reports whether users can import a package, by its path below the module: "." is the
// root package.
func IsPublic(short string) bool {
	elements := strings.Split(strings.TrimPrefix(short, "./"), "/")
	if slices.Contains(elements, "internal") {
		return false
	}
	return !slices.Contains([]string{"bench", "cmd", "examples", "torture"}, elements[0])
}

func load(dir string) (*tree, error) {
	modules, err := modulesOf(dir)
	if err != nil {
		return nil, err
	}
	t := new(tree)
	seen := make(map[string]bool)
	for _, m := range modules {
		if first, _, _ := strings.Cut(m, "/"); slices.Contains(asideModules, first) {
			continue
		}
		listed, err := list(filepath.Join(dir, m))
		if err != nil {
			return nil, err
		}
		for _, p := range listed {
			if !seen[p.ImportPath] {
				seen[p.ImportPath] = true
				t.packages = append(t.packages, p)
			}
		}
	}
	return t, t.check(dir)
}

// modulesOf returns the folders of the modules below dir. It looks into each folder, so that go
// test repeats a test of the figures when any of them has changed.
func modulesOf(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		case e.Name() == "go.mod":
			below, err := filepath.Rel(dir, filepath.Dir(name))
			found = append(found, filepath.ToSlash(below))
			return err
		}
		return nil
	})
	return found, err
}

// list returns the packages of the module in dir and what they import of this repository.
func list(dir string) (ours []*Package, err error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Name,GoFiles,EmbedFiles,Imports", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64") // the figures are the same everywhere
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(Package)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return ours, nil
		} else if err != nil {
			return nil, err
		}
		if p.ImportPath == Module || strings.HasPrefix(p.ImportPath, Module+"/") {
			ours = append(ours, p)
		}
	}
}

func output(cmd *exec.Cmd) ([]byte, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w\n%s", strings.Join(cmd.Args, " "), cmd.Dir, err, said.Bytes())
	}
	return out, nil
}

// suites are public, and test what others write.
var suites = []string{"locktest", "paxosbridge/clustertest"}

// entries are what users import and run, except for tests.
func (t *tree) entries() (paths []string) {
	for _, p := range t.packages {
		if slices.Contains(suites, p.short()) {
			continue
		}
		if IsPublic(p.short()) || p.Name == "main" && strings.HasPrefix(p.short(), "cmd/") {
			paths = append(paths, p.ImportPath)
		}
	}
	return paths
}

// closure is what paths name and all that these import of this repository.
func (t *tree) closure(paths []string) (found []*Package) {
	in := make(map[string]bool)
	for _, p := range paths {
		in[p] = true
	}
	for _, p := range slices.Backward(t.packages) {
		if in[p.ImportPath] {
			found = append(found, p)
			for _, i := range p.Imports {
				in[i] = true
			}
		}
	}
	slices.Reverse(found)
	return found
}

// check reads the packages and finds out what their names mean. What is declared outside of the
// repository and the standard library stays unknown, because it would have to be compiled.
func (t *tree) check(dir string) error {
	fset := token.NewFileSet()
	standard, err := t.standard(fset, dir)
	if err != nil {
		return err
	}
	known := importers{ours: make(map[string]*types.Package), standard: standard}
	for _, p := range t.packages {
		if err := p.parse(fset); err != nil {
			return err
		}
		p.info = &types.Info{
			Uses: make(map[*ast.Ident]types.Object), Types: make(map[ast.Expr]types.TypeAndValue),
		}
		cfg := types.Config{Importer: known, Error: func(error) {}}
		p.types, _ = cfg.Check(p.ImportPath, fset, p.files, p.info)
		known.ours[p.ImportPath] = p.types
	}
	return nil
}

func (p *Package) parse(fset *token.FileSet) error {
	p.fset, p.sql = fset, make(map[string]int)
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		p.lines += bytes.Count(text, []byte("\n"))
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
	}
	for _, name := range p.EmbedFiles {
		if path.Ext(name) != ".sql" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		p.sql[name] = bytes.Count(text, []byte("\n"))
	}
	return nil
}

// standard imports the packages of the standard library.
func (t *tree) standard(fset *token.FileSet, dir string) (types.Importer, error) {
	paths := make(map[string]bool)
	for _, p := range t.packages {
		for _, i := range p.Imports {
			if first, _, _ := strings.Cut(i, "/"); !strings.Contains(first, ".") && i != "C" && i != "unsafe" {
				paths[i] = true
			}
		}
	}
	return Importer(fset, dir, slices.Sorted(maps.Keys(paths))...)
}

// Importer imports packages, and all they import, from what the compiler has exported of them: the
// go command, run in dir, says where that is.
func Importer(fset *token.FileSet, dir string, packages ...string) (types.Importer, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Dir = dir
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		importPath, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[importPath] = file
	}
	return importer.ForCompiler(fset, "gc", func(importPath string) (io.ReadCloser, error) {
		if exports[importPath] == "" {
			return nil, fmt.Errorf("no export data of %s", importPath)
		}
		return os.Open(exports[importPath])
	}), nil
}

type importers struct {
	ours     map[string]*types.Package
	standard types.Importer
}

func (i importers) Import(importPath string) (*types.Package, error) {
	if p := i.ours[importPath]; p != nil {
		return p, nil
	}
	if first, _, _ := strings.Cut(importPath, "/"); !strings.Contains(first, ".") {
		return i.standard.Import(importPath)
	}
	p := types.NewPackage(importPath, path.Base(importPath)) // and nothing is declared in it
	p.MarkComplete()
	return p, nil
}
