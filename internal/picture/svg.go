package main

import (
	"encoding/xml"
	"fmt"
)

// node is one element of the picture. encoding/xml escapes its text and its attributes.
type node struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	CSS      string     `xml:",cdata"` // as Text it would be one line, full of &#xA;
	Children []node
}

// element takes its attributes as pairs of a name and a value.
func element(name string, pairs ...any) node {
	n := node{XMLName: xml.Name{Local: name}}
	for i := 0; i < len(pairs); i += 2 {
		attr := xml.Attr{Name: xml.Name{Local: pairs[i].(string)}, Value: fmt.Sprint(pairs[i+1])}
		n.Attrs = append(n.Attrs, attr)
	}
	return n
}

func (n node) saying(text string) node {
	n.Text = text
	return n
}

func box(class string, x1, x2, y, height int) node {
	return element("rect", "class", class, "x", x1, "y", y, "width", x2-x1, "height", height, "rx", 5)
}

func path(class, format string, coordinates ...any) node {
	return element("path", "class", class, "d", fmt.Sprintf(format, coordinates...))
}

// label is text whose baseline begins at x, y; with class end it ends there, and with class middle
// it is centered there.
func label(class string, x, y int, text string) node {
	return element("text", "class", class, "x", x, "y", y).saying(text)
}

// bar is a box with a label in its middle.
func bar(class string, x1, x2, y int, text string) []node {
	return []node{box(class, x1, x2, y, barHeight), label("middle", (x1+x2)/2, y+29, text)}
}

// arrow points from y1 to y2, up or down.
func arrow(x, y1, y2 int) node {
	tip := 9
	if y2 > y1 {
		tip = -tip
	}
	return path("line", "M%d %dV%dm-7 %dl7 %dl7 %d", x, y1, y2, tip, -tip, tip)
}

// cross and check are drawn as lines, because the reader's font may lack these characters.
func cross(x, y int) []node {
	return []node{badge("no", x, y), path("sign", "M%d %dl14 14m0-14l-14 14", x-7, y-7)}
}

func check(x, y int) []node {
	return []node{badge("yes", x, y), path("sign", "M%d %dl6 6l10-12", x-8, y+1)}
}

func badge(class string, x, y int) node {
	return element("circle", "class", class, "cx", x, "cy", y, "r", 16)
}
