package paper

import (
	"os/exec"
	"strings"
)

// Commit is what is measured, as git names it, with -dirty if a file that git knows is changed: then
// the figures are of no commit. Published results are no such change, as they are written in the end.
func Commit() string {
	text, err := exec.Command("git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty").Output()
	if err != nil {
		return "no commit known"
	}
	return strings.TrimSpace(string(text))
}
