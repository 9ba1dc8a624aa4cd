package lockpath

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// function is a declared function or method. A function literal is a part of the one around it.
type function struct {
	pkg, name  string
	begin, end position
}

func (f function) lines() int { return f.end.line - f.begin.line + 1 }

// entered returns the functions that most rounds of one kind have entered. What one round in a
// hundred enters is the background's, and what ninety-nine enter belongs to the path.
func (p place) entered(kind string) (most []function, err error) {
	rounds, err := filepath.Glob(filepath.Join(p.folder, kind, "*"))
	if err != nil {
		return nil, err
	}
	if len(rounds) == 0 {
		return nil, errors.New("the probe has written no counters of " + kind)
	}
	src, times := source{p.dir, make(map[string][]function)}, make(map[function]int)
	for _, round := range rounds {
		profile := round + ".txt"
		err := p.run("go", "tool", "covdata", "textfmt", "-i="+round, "-o="+profile)
		if err != nil {
			return nil, err
		}
		blocks, err := enteredBlocks(profile)
		if err != nil {
			return nil, err
		}
		functions, err := src.around(blocks)
		if err != nil {
			return nil, err
		}
		for f := range functions {
			times[f]++
		}
	}
	for f, n := range times {
		if 2*n > len(rounds) {
			most = append(most, f)
		}
	}
	return most, nil
}

// block is where a block of a coverage profile begins.
type block struct {
	file string
	at   position
}

// enteredBlocks returns the blocks that a coverage profile counts, without those of the probe
// itself.
func enteredBlocks(profile string) (entered []block, err error) {
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Scan() // mode: atomic
	for in.Scan() {
		// path/file.go:12.34,56.78 statements count
		line := in.Text()
		if strings.HasSuffix(line, " 0") || strings.HasPrefix(line, figures.Module+"/internal/house/") {
			continue
		}
		file, place, _ := strings.Cut(line, ":")
		b := block{file: file}
		if _, err := fmt.Sscanf(place, "%d.%d,", &b.at.line, &b.at.column); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		entered = append(entered, b)
	}
	return entered, in.Err()
}

type position struct{ line, column int }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// source has the functions of the files that were looked at.
type source struct {
	dir   string
	files map[string][]function
}

// around returns the functions in which the blocks are.
func (s source) around(blocks []block) (map[function]bool, error) {
	found := make(map[function]bool)
	for _, b := range blocks {
		functions, err := s.functions(b.file)
		if err != nil {
			return nil, err
		}
		for _, f := range functions {
			if b.at.compare(f.begin) >= 0 && b.at.compare(f.end) < 0 {
				found[f] = true
			}
		}
	}
	return found, nil
}

func (s source) functions(file string) (all []function, err error) {
	if known, ok := s.files[file]; ok {
		return known, nil
	}
	below := strings.TrimPrefix(file, figures.Module+"/")
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, filepath.Join(s.dir, below), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(pos token.Pos) position {
		p := fset.Position(pos)
		return position{p.Line, p.Column}
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			all = append(all, function{path.Dir(below), figures.NameOf(f), at(f.Pos()), at(f.End())})
		}
	}
	s.files[file] = all
	return all, nil
}

// perPackage counts functions by package, the most first.
func perPackage(list []function) (lines []string) {
	n := make(map[string]int)
	for _, f := range list {
		n[f.pkg]++
	}
	for pkg, n := range n {
		lines = append(lines, fmt.Sprintf("%5d %s", n, pkg))
	}
	slices.Sort(lines)
	slices.Reverse(lines)
	return lines
}
