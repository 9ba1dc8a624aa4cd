package figures

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// neighbours are the modules that speak to lock services of others.
var neighbours = []string{"shedlock", "transition", "wlock"}

// largestAdapter finds the most lines of Go that an adapter has.
func largestAdapter(dir string) (Figure, error) {
	f := Figure{Name: "adapter.largest", Counts: "lines of Go of the largest adapter, without tests and doc.go"}
	folders, err := fs.Glob(os.DirFS(dir), "adapters/*")
	if err != nil {
		return f, err
	}
	each, err := apart(dir, folders)
	for _, c := range each {
		f.Value = max(f.Value, c.n)
	}
	f.Why = most(each)
	return f, err
}

// neighbourLines counts what there is of modules that speak to lock services of others.
func neighbourLines(dir string) (Figure, error) {
	f := Figure{
		Name:   "neighbours.lines",
		Counts: "lines of Go of " + strings.Join(neighbours, ", ") + ", without tests and doc.go",
	}
	each, err := apart(dir, neighbours)
	return f.ofLines(each), err
}

// apart counts the lines of Go in each folder, and below it. What a doc.go says is no code, and
// what only tests import, in a folder that ends so, is none of the user's.
func apart(dir string, folders []string) ([]counted, error) {
	var each []counted
	for _, folder := range folders {
		var lines int
		err := fs.WalkDir(os.DirFS(dir), folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err):
				return nil
			case err != nil:
				return err
			case d.IsDir() && strings.HasSuffix(name, "test"):
				return fs.SkipDir
			case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || d.Name() == "doc.go":
				return nil
			}
			text, err := os.ReadFile(filepath.Join(dir, name))
			lines += bytes.Count(text, []byte("\n"))
			return err
		})
		if err != nil {
			return nil, err
		}
		if lines > 0 {
			each = append(each, counted{folder, lines})
		}
	}
	return each, nil
}
