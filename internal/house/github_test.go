package house

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A module that is not named gets no update of a dependency with a known vulnerability.
func TestDependabotLooksAtEveryModule(t *testing.T) {
	t.Chdir(root)
	_, list, _ := strings.Cut(readFile(t, ".github/dependabot.yml"), "package-ecosystem: gomod")
	var named, found []string
	for _, m := range regexp.MustCompile(`(?m)^      - (/\S*)$`).FindAllStringSubmatch(list, -1) {
		named = append(named, m[1])
	}
	for _, file := range find(t, ".", "go.mod") {
		found = append(found, path.Clean("/"+path.Dir(file)))
	}
	slices.Sort(named)
	slices.Sort(found)
	if !slices.Equal(named, found) {
		t.Errorf("dependabot.yml names %q, and the modules are %q", named, found)
	}
}

var (
	usesAction = regexp.MustCompile(`(?m)^.*\buses:.*$`)
	pinned     = regexp.MustCompile(`uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// A tag can be moved to another commit, and runs with what the workflow may do.
func TestActionsArePinnedToACommit(t *testing.T) {
	t.Chdir(root)
	vulnerabilities := false
	for _, file := range find(t, ".github/workflows", ".yml") {
		text := readFile(t, file)
		vulnerabilities = vulnerabilities || strings.Contains(text, "govulncheck -C")
		for _, line := range usesAction.FindAllString(text, -1) {
			if !pinned.MatchString(line) {
				t.Errorf("%s: %s: name a commit, and its version behind #", file, strings.TrimSpace(line))
			}
		}
	}
	if !vulnerabilities {
		t.Error("no workflow runs govulncheck")
	}
}
