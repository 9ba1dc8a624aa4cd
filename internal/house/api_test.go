package house

import (
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

var update = flag.Bool("update", false, "write testdata/api instead of comparing with it")

const (
	apiFolder     = "testdata/api"
	updateCommand = "go test ./internal/house -run TestPublicAPI -update"
)

// A change of the public API shows in the diff of testdata/api, so that it is seen. The lists
// come from the types, not from go doc: another version of Go writes the same.
func TestPublicAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles every public package")
	}
	t.Chdir(root)
	got := make(map[string]string)
	for path, pkg := range publicPackages(t) {
		got[path] = api(pkg)
	}
	if *update {
		write(t, got)
		return
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		file := filepath.Join(apiFolder, path+".txt")
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("package %s is new: %s (%v)", path, updateCommand, err)
			continue
		}
		for _, line := range onlyIn(string(want), got[path]) {
			t.Errorf("%s: gone: %s", path, line)
		}
		for _, line := range onlyIn(got[path], string(want)) {
			t.Errorf("%s: new: %s", path, line)
		}
	}
	for _, file := range apiFiles(t) {
		if _, ok := got[file]; !ok {
			t.Errorf("package %s is gone, and its list is still there", file)
		}
	}
	if t.Failed() {
		t.Log("if the change is meant: " + updateCommand +
			" (docs/compatibility.md says what may change)")
	}
}

func onlyIn(this, other string) (lines []string) {
	others := strings.Split(other, "\n")
	for line := range strings.SplitSeq(this, "\n") {
		if !slices.Contains(others, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// apiFiles returns the packages that have a list.
func apiFiles(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(apiFolder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(apiFolder, name)
		paths = append(paths, strings.TrimSuffix(filepath.ToSlash(rel), ".txt"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func write(t *testing.T, all map[string]string) {
	t.Helper()
	if err := os.RemoveAll(apiFolder); err != nil {
		t.Fatal(err)
	}
	for path, text := range all {
		file := filepath.Join(apiFolder, path+".txt")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// publicPackages returns the packages that users can import, under their paths below the module.
// The root package is "rowlock".
func publicPackages(t *testing.T) map[string]*types.Package {
	t.Helper()
	var paths []string
	for path := range listImports(t) {
		if figures.IsPublic(path) {
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		touch(t, path)
	}
	imp, err := figures.Importer(token.NewFileSet(), ".", paths...)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*types.Package)
	for _, path := range paths {
		pkg, err := imp.Import(module + strings.TrimPrefix(path, "."))
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(path, "./")
		if path == "." {
			name = pkg.Name()
		}
		all[name] = pkg
	}
	return all
}

// touch looks at a package's files, so that go test sees that the result depends on them. A
// function that nothing calls leaves the program of the test as it is: go test would repeat its
// last result.
func touch(t *testing.T, folder string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(folder, file.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// api lists what a package exports: one line for each name, field and method, in order.
func api(pkg *types.Package) string {
	short := func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		return p.Name()
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch obj := obj.(type) {
		case *types.Const:
			value := obj.Val().ExactString()
			add("const %s %s = %s", name, types.TypeString(obj.Type(), short), value)
		case *types.TypeName:
			lines = append(lines, typeLines(obj, short)...)
		default: // "var X T", "func F(…)"
			add("%s", types.ObjectString(obj, short))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func typeLines(obj *types.TypeName, short types.Qualifier) (lines []string) {
	if obj.IsAlias() {
		return []string{types.ObjectString(obj, short)}
	}
	name := types.TypeString(obj.Type(), short) // with its type parameters
	add := func(format string, args ...any) {
		lines = append(lines, "type "+name+" "+fmt.Sprintf(format, args...))
	}
	switch under := obj.Type().Underlying().(type) {
	case *types.Struct:
		add("struct")
		hidden := false
		for f := range under.Fields() {
			switch what := types.TypeString(f.Type(), short); {
			case !f.Exported():
				hidden = true
			case f.Embedded():
				add("struct, embeds %s", what)
			default:
				add("struct, %s %s", f.Name(), what)
			}
		}
		if hidden {
			add("struct, unexported fields")
		}
	case *types.Interface:
		add("interface")
		hidden := false
		for m := range under.Methods() {
			if hidden = hidden || !m.Exported(); m.Exported() {
				add("interface, %s%s", m.Name(), signature(m, short))
			}
		}
		if hidden {
			add("interface, unexported methods")
		}
		return lines
	default:
		add("%s", types.TypeString(under, short))
	}
	return append(lines, methodLines(obj.Type(), name, short)...)
}

// methodLines has the methods that come from embedded types too: they are as public as a type's
// own.
func methodLines(typ types.Type, name string, short types.Qualifier) (lines []string) {
	ofValue := types.NewMethodSet(typ)
	for m := range types.NewMethodSet(types.NewPointer(typ)).Methods() {
		f := m.Obj()
		if !f.Exported() {
			continue
		}
		receiver := name
		if ofValue.Lookup(f.Pkg(), f.Name()) == nil {
			receiver = "*" + name
		}
		lines = append(lines, fmt.Sprintf("method (%s) %s%s", receiver, f.Name(), signature(f, short)))
	}
	return lines
}

func signature(f types.Object, short types.Qualifier) string {
	return strings.TrimPrefix(types.TypeString(f.Type(), short), "func")
}
