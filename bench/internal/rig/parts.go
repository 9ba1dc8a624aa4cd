package rig

import (
	"fmt"
	"slices"
	"strings"
)

// Choose returns which of parts were asked for, with commas between; the empty string asks for all.
func Choose(only string, parts ...string) (chosen map[string]bool, err error) {
	asked := parts
	if only != "" {
		asked = strings.Split(only, ",")
	}
	chosen = make(map[string]bool)
	for _, part := range asked {
		if !slices.Contains(parts, part) {
			return nil, fmt.Errorf("-only %s: there are %s", part, strings.Join(parts, ", "))
		}
		chosen[part] = true
	}
	return chosen, nil
}
