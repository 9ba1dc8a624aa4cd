package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

const root = "../../.."

func TestThePagesAreCurrentAndNameEveryStatement(t *testing.T) {
	for _, r := range dialects {
		want, err := page(root, r)
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := os.ReadFile(r.file(root))
		if err != nil {
			t.Error(err)
		} else if string(text) != want {
			t.Errorf("docs/sql/%s.md is not current: run go generate ./dialect", r.name)
		}
	}
}

// The statements for other languages are rowlock's own.
func TestTheStatementsForOtherLanguagesAreCurrent(t *testing.T) {
	for _, r := range dialects {
		want, err := languages(root, r)
		if err != nil {
			t.Error(err)
			continue
		}
		text, err := os.ReadFile(r.borrowedFile(root))
		if err != nil {
			t.Error(err)
		} else if string(text) != want {
			t.Errorf("%s is not current: run go generate ./dialect", r.borrowedFile("."))
		}
	}
}

func TestEverySentenceIsOfAStatement(t *testing.T) {
	used := make(map[string]bool)
	for _, r := range dialects {
		files, err := r.sources(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range sqlstore.CutSections(string(text)) {
				if name := r.name + "/" + c.Name; calls[name] != "" {
					used[name] = true
				} else {
					used[c.Name] = true
				}
			}
		}
	}
	for name, says := range calls {
		if !used[name] {
			t.Errorf("calls.txt has a sentence for %q, and no dialect such a statement", name)
		}
		if !strings.HasSuffix(says, ".") {
			t.Errorf("calls.txt: %s: %q is no sentence", name, says)
		}
	}
}

func TestACommentEndsWhereTheStatementBegins(t *testing.T) {
	if got := comment("-- one\n-- two\n--\n-- three\nSELECT 1 -- why\nFROM t;\n\n"); got != "one\ntwo\n\nthree" {
		t.Errorf("%q", got)
	}
}
