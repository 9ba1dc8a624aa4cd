package settings

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.list
var lists embed.FS

// Verdict is what a setting means for rowlock's statements.
type Verdict struct{ Kind, Why string }

// Kinds are the kinds of verdicts.
var kinds = map[string]bool{
	"pinned": true, "lanes": true, "checked": true, "none": true, "unflipped": true,
}

// Group is a verdict with its settings.
type Group struct {
	Verdict
	Names []string
}

// Groups are the verdicts on a product's settings: "postgres", "mysql", "mariadb" or "sqlite".
func Groups(product string) ([]Group, error) {
	text, err := lists.ReadFile(product + ".list")
	if err != nil {
		return nil, err
	}
	var all []Group
	for line := range strings.Lines(string(text)) {
		kind, why, is := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
		case is && kinds[kind]:
			all = append(all, Group{Verdict: Verdict{kind, strings.TrimSpace(why)}})
		case all == nil:
			return nil, fmt.Errorf("%s.list: no verdict before %q", product, line)
		default:
			g := &all[len(all)-1]
			g.Names = append(g.Names, strings.Fields(line)...)
		}
	}
	return all, nil
}

// Verdicts are those of a product by the setting's name in small letters.
func Verdicts(product string) (map[string]Verdict, error) {
	groups, err := Groups(product)
	all := make(map[string]Verdict)
	for _, g := range groups {
		for _, name := range g.Names {
			name = strings.ToLower(name)
			if _, twice := all[name]; twice {
				return nil, fmt.Errorf("%s.list has two verdicts on %s", product, name)
			}
			all[name] = g.Verdict
		}
	}
	return all, err
}
