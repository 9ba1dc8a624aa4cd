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
	"pinned": true, "connections": true, "checked": true, "none": true, "unflipped": true,
}

// Group is a verdict with its settings.
type Group struct {
	Verdict
	Names []string
}

// Lists are those of a product, "postgres", "mysql", "mariadb" or "sqlite", by what its settings are
// set of: each session, the server while it runs, and the server as it starts. SQLite has no server.
func Lists(product string) []string {
	if product == "sqlite" {
		return []string{product}
	}
	return []string{product, product + "-server", product + "-start"}
}

// Groups are the verdicts of a list.
func Groups(list string) ([]Group, error) {
	text, err := lists.ReadFile(list + ".list")
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
			return nil, fmt.Errorf("%s.list: no verdict before %q", list, line)
		default:
			g := &all[len(all)-1]
			g.Names = append(g.Names, strings.Fields(line)...)
		}
	}
	return all, nil
}

// Verdicts are those of a product's lists by the setting's name in small letters.
func Verdicts(product string) (map[string]Verdict, error) {
	all := make(map[string]Verdict)
	for _, list := range Lists(product) {
		groups, err := Groups(list)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			for _, name := range g.Names {
				name = strings.ToLower(name)
				if _, twice := all[name]; twice {
					return nil, fmt.Errorf("%s.list has a second verdict on %s", list, name)
				}
				all[name] = g.Verdict
			}
		}
	}
	return all, nil
}
