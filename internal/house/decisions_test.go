package house

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A reader finds the reason for a choice on one page, and reads all pages in an hour and a half. A
// new decision goes into the page of its idea, or takes the place of one that no longer holds.
const (
	decisionPages = 40
	decisionWords = 20_000
)

const decisions = "docs/decisions/"

// stub is the page of a number that has its reasons on another page. Code and docs name decisions
// by their numbers, so that none goes away.
var stub = regexp.MustCompile(`^# \d{4} [^\n]+\n\nMerged into \[(\d{4})\]\(([^)\n]+)\)\.\n$`)

func TestDecisionsAreFewAndShort(t *testing.T) {
	t.Chdir(root)
	pages, words := 0, 0
	for _, page := range find(t, decisions, ".md") {
		text := readFile(t, page)
		words += len(strings.Fields(text))
		if numberOf(page) != "" && !stub.MatchString(text) {
			pages++
		}
	}
	if pages > decisionPages {
		t.Errorf("%s has %d pages that are no stubs; at most %d are allowed: "+
			"merge the ones of one idea, and leave a stub for each number", decisions, pages, decisionPages)
	}
	if words > decisionWords {
		t.Errorf("%s has %d words; at most %d are allowed: leave out what code or docs say already",
			decisions, words, decisionWords)
	}
}

// A stub leads to the reasons in one step.
func TestStubsOfDecisionsLeadToAPage(t *testing.T) {
	t.Chdir(root)
	pages := find(t, decisions, ".md")
	for _, page := range pages {
		text := readFile(t, page)
		to := stub.FindStringSubmatch(text)
		if to == nil {
			if strings.Contains(text, "\nMerged into ") {
				t.Errorf("%s: a stub is its title, an empty line and \"Merged into [NNNN](file).\"", page)
			}
			continue
		}
		switch target := decisions + to[2]; {
		case numberOf(target) != to[1]:
			t.Errorf("%s: the link says %s and leads to %s", page, to[1], to[2])
		case !slices.Contains(pages, target):
			t.Errorf("%s is merged into %s, which does not exist", page, to[2])
		case stub.MatchString(readFile(t, target)):
			t.Errorf("%s is merged into %s, which is a stub itself", page, to[2])
		}
	}
}

// The index has a line for each page, and names each stub beside the page that has its reasons.
func TestTheIndexOfDecisionsIsComplete(t *testing.T) {
	t.Chdir(root)
	index := readFile(t, decisions+"README.md")
	for _, page := range find(t, decisions, ".md") {
		number := numberOf(page)
		if number == "" {
			continue
		}
		link := "- [" + number + "](" + path.Base(page) + ") "
		if to := stub.FindStringSubmatch(readFile(t, page)); to == nil {
			if strings.Count(index, link) != 1 {
				t.Errorf("%sREADME.md has no line that begins with %q, or two", decisions, link)
			}
		} else if !strings.Contains(itemOf(index, to[1]), number) {
			t.Errorf("%sREADME.md does not name %s in the line of %s, into which it is merged", decisions, number, to[1])
		}
	}
}

// itemOf is the item of a decision in the index, with the lines into which it is wrapped.
func itemOf(index, number string) string {
	_, rest, _ := strings.Cut(index, "- ["+number+"](")
	item, _, _ := strings.Cut(rest, "\n- ")
	return item
}

// mention is a decision by its number, as in "decision 0017", "decisions/0017-what.md" and
// "[decision 0017](…)", also across the lines of a comment.
var mention = regexp.MustCompile(`(?i)\bdecisions?(?:\s|//|--|[/(\[#*])+(\d{4})\b`)

func TestDecisionsThatAreNamedExist(t *testing.T) {
	t.Chdir(root)
	known := map[string]bool{}
	for _, page := range find(t, decisions, ".md") {
		known[numberOf(page)] = true
	}
	named := 0
	for _, suffix := range []string{".go", ".md", ".sql", ".txt", ".sh", ".yml", "Makefile"} {
		for _, file := range find(t, ".", suffix) {
			for _, m := range mention.FindAllStringSubmatch(readFile(t, file), -1) {
				if named++; !known[m[1]] {
					t.Errorf("%s names decision %s, which does not exist", file, m[1])
				}
			}
		}
	}
	if named == 0 {
		t.Error("no file names a decision: has the way of naming them changed?")
	}
}

var numbered = regexp.MustCompile(`^(\d{4})-[^/]+\.md$`)

// numberOf is the number in the name of a decision's page, and "" for another file.
func numberOf(page string) string {
	if m := numbered.FindStringSubmatch(path.Base(page)); m != nil {
		return m[1]
	}
	return ""
}
