package main

import (
	"fmt"
	"strings"
)

// shape is the part of the style that both color schemes share. The picture has its own background:
// a page can be light while the reader's system is dark, and light text on it would be invisible.
const shape = `
text { font: 22px system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif }
.title, .strong { font-weight: 700 }
.title { font-size: 24px }
.middle { text-anchor: middle }
.end { text-anchor: end }
rect, path { stroke-width: 2 }
.line, .sign { fill: none; stroke-width: 3; stroke-linecap: round; stroke-linejoin: round }
.stopped { stroke-dasharray: 7 5 }
`

// paint is the value of one CSS property of a class in each color scheme.
type paint struct{ class, property, light, dark string }

var paints = []paint{
	{"text", "fill", "#1f2328", "#f0f6fc"},
	{".paper", "fill", "#ffffff", "#0d1117"},
	{".paper", "stroke", "#d1d9e0", "#3d444d"},
	{".a", "fill", "#ffe8d1", "#4a2a0b"},
	{".a", "stroke", "#bc4c00", "#f0883e"},
	{".b", "fill", "#d8ecff", "#0c2d5e"},
	{".b", "stroke", "#0969da", "#58a6ff"},
	{".stopped", "fill", "#ffffff", "#0d1117"},
	{".line", "stroke", "#59636e", "#9198a1"},
	{".solid", "fill", "#1f2328", "#f0f6fc"},
	{".sign", "stroke", "#ffffff", "#0d1117"},
	{".no", "fill", "#cf222e", "#ff7b72"},
	{".yes", "fill", "#1a7f37", "#3fb950"},
}

func css() string {
	var light, dark strings.Builder
	for _, p := range paints {
		fmt.Fprintf(&light, "%s { %s: %s }\n", p.class, p.property, p.light)
		fmt.Fprintf(&dark, "%s { %s: %s }\n", p.class, p.property, p.dark)
	}
	return fmt.Sprintf("%s%s@media (prefers-color-scheme: dark) {\n%s}\n", shape, &light, &dark)
}
