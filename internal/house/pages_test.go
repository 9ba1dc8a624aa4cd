package house

import (
	"go/format"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A reader takes five minutes for the README. What does not fit has a page in docs.
const readmeLines = 150

func TestReadmeIsShort(t *testing.T) {
	t.Chdir(root)
	if n := strings.Count(readFile(t, "README.md"), "\n"); n > readmeLines {
		t.Errorf("README.md has %d lines; at most %d are allowed: move the rest to docs/", n, readmeLines)
	}
}

// What users read beside it stays readable too: prose, without code and the bars of tables, and
// without the list of all settings that a server can have.
const pagesWords = 29_000

func TestPagesAreShort(t *testing.T) {
	t.Chdir(root)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, page := range append(pages, "README.md", "AGENTS.md") {
		if page == filepath.FromSlash("docs/server-settings.md") {
			continue
		}
		for _, word := range strings.Fields(codeBlock.ReplaceAllString(readFile(t, page), "")) {
			if strings.Trim(word, "|-") != "" {
				words++
			}
		}
	}
	t.Logf("%d words", words)
	if words > pagesWords {
		t.Errorf("docs/*.md, README.md and AGENTS.md have %d words; at most %d are allowed: say it once", words, pagesWords)
	}
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// The README's programs, in this order. The build compiles them, and their own tests run them.
var readmePrograms = []string{"examples/first/main.go", "examples/postgres/main.go"}

func TestReadmeProgramsAreTheExamples(t *testing.T) {
	t.Chdir(root)
	blocks := goBlock.FindAllStringSubmatch(readFile(t, "README.md"), -1)
	if len(blocks) != len(readmePrograms) {
		t.Fatalf("README.md has %d Go blocks, want those of %q", len(blocks), readmePrograms)
	}
	for i, program := range readmePrograms {
		if _, code, _ := strings.Cut(readFile(t, program), "package main"); blocks[i][1] != "package main"+code {
			t.Errorf("README.md's Go block %d is not %s without its comment", i+1, program)
		}
	}
}

// Every other line of Go in the README, in AGENTS.md and in docs stands in an example too, and
// every block is whole and formatted.
func TestReadmeAndDocsAreCompiled(t *testing.T) {
	t.Chdir(root)
	compiled := linesOfExamples(t)
	for _, page := range append(find(t, "docs", ".md"), "README.md", "AGENTS.md") {
		if strings.HasPrefix(page, "docs/decisions/") { // a decision may show what was rejected
			continue
		}
		for _, block := range goBlock.FindAllStringSubmatch(readFile(t, page), -1) {
			if tidy, err := format.Source([]byte(block[1])); err != nil || string(tidy) != block[1] {
				t.Errorf("%s: gofmt would change this block, or cannot read it (%v):\n%s", page, err, block[1])
			}
			for line := range strings.Lines(block[1]) {
				if line = bareLine(line); line != "" && !compiled[line] {
					t.Errorf("%s: %q is in no example", page, line)
				}
			}
		}
	}
}

// A reader takes these pages for complete.
func TestPagesNameAllThatTheyList(t *testing.T) {
	t.Chdir(root)
	api := readFile(t, "testdata/api/rowlock.txt")
	for _, list := range []struct{ page, of string }{
		{"docs/settings.md", `(?m)^type Config struct, (\w+)`},
		{"docs/getting-started.md", `(?m)^func (\w+)\(.*\) Option$`},
		{"docs/metrics.md", `(?m)^type Hooks struct, (\w+)`},
		{"docs/metrics.md", `(?m)^type Stats struct, (\w+)`},
	} {
		names := regexp.MustCompile(list.of).FindAllStringSubmatch(api, -1)
		if len(names) == 0 {
			t.Errorf("testdata/api has nothing of the form %s", list.of)
		}
		text := readFile(t, list.page)
		for _, name := range names {
			if !regexp.MustCompile("`[^`\n]*\\b" + name[1] + "\\b").MatchString(text) {
				t.Errorf("%s does not name %s", list.page, name[1])
			}
		}
	}
}

// What docs/protocol.md shows stands in the files that programs in other languages load and copy.
// The programs are as short as the page says.
func TestTheProtocolIsWhatItsProgramsRun(t *testing.T) {
	t.Chdir(root)
	const folder = "examples/languages/"
	shown := regexp.MustCompile("(?s)```(sql|python)\n(.*?)```")
	files := map[string]string{
		"sql": readFile(t, folder+"postgres.sql"), "python": readFile(t, folder+"locker.py"),
	}
	blocks := shown.FindAllStringSubmatch(readFile(t, "docs/protocol.md"), -1)
	if len(blocks) == 0 {
		t.Error("docs/protocol.md shows nothing")
	}
	for _, b := range blocks {
		if !strings.Contains(files[b[1]], b[2]) {
			t.Errorf("docs/protocol.md: this is not in %s:\n%s", folder, b[2])
		}
	}
	for _, program := range []string{"locker.py", "Locker.java"} {
		if n := strings.Count(readFile(t, folder+program), "\n"); n >= 100 {
			t.Errorf("%s has %d lines; the page says less than 100", program, n)
		}
	}
}

// linesOfExamples returns the lines of all examples, of every module: make test compiles them.
func linesOfExamples(t *testing.T) map[string]bool {
	t.Helper()
	lines := map[string]bool{}
	for _, file := range append(find(t, ".", "example_test.go"), readmePrograms...) {
		for line := range strings.Lines(readFile(t, file)) {
			lines[bareLine(line)] = true
		}
	}
	return lines
}

var remark = regexp.MustCompile(`\s+// .*`)

// bareLine is a line without indentation and comment.
func bareLine(line string) string {
	return strings.TrimSpace(remark.ReplaceAllString(line, ""))
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	linkTo    = regexp.MustCompile(`\]\(\s*([^)\s]+)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unlinked  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every relative link leads to a file that exists, and to a heading that this file has.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Chdir(root)
	pages := append(find(t, "docs", ".md"), "README.md", "AGENTS.md", "CONTRIBUTING.md",
		"SECURITY.md", "CHANGELOG.md")
	for _, page := range pages {
		text := codeBlock.ReplaceAllString(readFile(t, page), "")
		for _, link := range linkTo.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(link[1])
			if err != nil {
				t.Errorf("%s: link %s: %v", page, link[1], err)
				continue
			}
			if to.IsAbs() {
				continue
			}
			target := page
			if to.Path != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(to.Path))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %s leads to no file", page, link[1])
			} else if to.Fragment != "" && !hasHeading(t, target, to.Fragment) {
				t.Errorf("%s: link %s: %s has no such heading", page, link[1], target)
			}
		}
	}
}

// hasHeading reports whether the page has a heading with this anchor, as GitHub makes them.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	for _, h := range heading.FindAllStringSubmatch(readFile(t, page), -1) {
		name := strings.ToLower(unlinked.ReplaceAllString(h[1], ""))
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// find returns the files below dir whose names end so, with slashes.
func find(t *testing.T, dir, suffix string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			files = append(files, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
