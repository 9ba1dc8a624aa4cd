// Package wire is for tests. It compares what rowlock writes for other processes and for scripts
// with files that a released version has written: keys, tokens, rows, messages, stored responses,
// JSON. A failure names the promise of docs/compatibility.md that the change would break.
//
// A process of this version runs beside processes of the released ones, and reads what they wrote
// months ago. So such a file changes only if every released version can read the new form.
package wire

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var update = flag.Bool("update", false,
	"write the wire vectors instead of comparing with them: only for a form that released versions read")

// Updates reports whether files are written, and not compared with.
func Updates() bool { return *update }

// TB is what the package needs of a testing.TB.
type TB interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// File is a file of vectors in the making: one a line, a name, ": " and a value.
type File struct {
	text            strings.Builder
	breaks, promise string
}

// New begins a file. Breaks says who cannot read a value that has changed. Promise is how a row of
// docs/compatibility.md begins, which says what may change.
func New(about, breaks, promise string) *File {
	f := &File{breaks: breaks, promise: promise}
	for _, line := range []string{about, "A change breaks " + breaks + "."} {
		fmt.Fprintf(&f.text, "# %s\n", line)
	}
	return f
}

// Add writes a vector. Use %q for a value that may have a line break.
func (f *File) Add(name, format string, args ...any) {
	fmt.Fprintf(&f.text, "%s: %s\n", name, fmt.Sprintf(format, args...))
}

// Section writes an empty line and a comment.
func (f *File) Section(about string) { fmt.Fprintf(&f.text, "\n# %s\n", about) }

// Match fails the test unless the file at path has exactly these vectors. With -update it writes
// them.
func (f *File) Match(tb TB, path string) {
	tb.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.text.String()), 0o644); err != nil {
			tb.Fatal(err)
		}
		return
	}
	promise := Promise(tb, f.promise)
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	was, is := strings.Split(string(text), "\n"), strings.Split(f.text.String(), "\n")
	for i := range max(len(was), len(is)) {
		if at(was, i) != at(is, i) {
			tb.Errorf("%s line %d is written in another form than before\nbefore: %s\n   now: %s\nThis breaks %s. "+
				"Keep the old form; use -update only if every released version reads the new one.\n"+
				"docs/compatibility.md, what may change before 1.0 and from 1.0 on:\n%s",
				path, i+1, at(was, i), at(is, i), f.breaks, promise)
			return
		}
	}
}

// Promise returns the row of docs/compatibility.md that begins so.
func Promise(tb TB, what string) string {
	tb.Helper()
	const page = "docs/compatibility.md"
	folder := "."
	for range 6 {
		text, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			folder = filepath.Join(folder, "..")
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "| "+what) {
				return strings.TrimSpace(line)
			}
		}
		break
	}
	tb.Fatal(page + " promises nothing of: " + what)
	return ""
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// Vector is one line of a file.
type Vector struct{ Name, Value string }

// Read returns the vectors of a file whose names begin with prefix, without it. There must be some.
func Read(tb TB, path, prefix string) []Vector {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var found []Vector
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if rest, is := strings.CutPrefix(name, prefix); ok && is && !strings.HasPrefix(line, "#") {
			found = append(found, Vector{rest, value})
		}
	}
	if len(found) == 0 {
		tb.Fatal(path + " has no vectors of " + prefix)
	}
	return found
}
