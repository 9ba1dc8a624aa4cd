package prose_test

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// gone are words that identifiers had before the field's own took their place. Each had a reader
// guess what the field calls the thing, so that none comes back. The list only grows.
var gone = map[string]string{
	"doubtful": "outcome unknown",
	"founder":  "single-flight leader",
	"handback": "release",
	"heir":     "next owner",
	"heirs":    "next owners",
	"janitor":  "orphan cleaner",
	"lane":     "pinned connection",
	"lanes":    "pinned connections",
	"manner":   "shared",
	"orderly":  "only in its slice",
	"owes":     "wake owed",
	"ripe":     "over, or what it has reached",
	"seam":     "adapter",
	"stance":   "the setting's own name",
	"streak":   "consecutive grants",
	"suspects": "probably locked",
	"wish":     "writer's intent",
	"wishes":   "writers' intents",
}

// part is a word of an identifier: "nextOwner" has two, "HTTPServer" too.
var part = regexp.MustCompile(`[A-Z]+(?:$|[^a-z])|[A-Z]?[a-z]+`)

func TestIdentifiersHaveTheFieldsWords(t *testing.T) {
	for _, file := range files(t, ".go") {
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		var s scanner.Scanner
		s.Init(set.AddFile(file, -1, len(source)), source, nil, 0)
		for pos, tok, name := s.Scan(); tok != token.EOF; pos, tok, name = s.Scan() {
			if tok != token.IDENT {
				continue
			}
			for _, word := range part.FindAllString(name, -1) {
				if better := gone[strings.ToLower(word)]; better != "" {
					t.Errorf("%s: %s says %q: say %s", set.Position(pos), name, word, better)
				}
			}
		}
	}
}
