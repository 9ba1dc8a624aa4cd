//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"strings"
)

// tested runs the test that finds the mutant.
func (c *control) tested(folder string, texts map[string]string) (finding, error) {
	settings, err := overlay(folder, texts)
	if err != nil {
		return finding{}, err
	}
	in, name, _ := strings.Cut(c.test, " ")
	out, err := exec.Command("go", "test", "-count=1", "-timeout=1m", "-overlay", settings, "-run", "^"+name+"$", in).CombinedOutput()
	switch text := string(out); {
	case err == nil && strings.Contains(text, "no tests to run"):
		return finding{}, fmt.Errorf("%s has no %s", in, name)
	case err == nil:
		return finding{note: name}, nil
	case strings.Contains(text, "--- FAIL: "), strings.Contains(text, "panic: "):
		return finding{was: true, note: name}, nil
	}
	return finding{}, fmt.Errorf("%w: %s", err, out)
}
