package main

import (
	"encoding/xml"
	"fmt"
)

const (
	title       = "Why the database checks the token"
	description = "A timeline with three lanes: process A, the row of the lock in the database, " +
		"process B. A locks and gets token 7. A is paused, by its garbage collector or by SIGSTOP, " +
		"for longer than its lease. The lease expires. B locks, gets token 8, and writes in a " +
		"transaction: Fence finds 8 in the row, as B has it. A wakes and begins a transaction. Fence " +
		"finds 8 in the row, but A has 7: it returns ErrFenced, and nothing is written. Without " +
		"Fence, A would overwrite B's work."
)

// The size of the picture. It is narrow so that its text is not too small on a phone.
const (
	width, height = 680, 560
	left, right   = 16, 664
	barHeight     = 42
)

// What happens, from left to right. The transaction of B ends before that of A begins: while it is
// open, A would wait in Fence.
const (
	pauses    = 98
	expires   = 130
	bLocks    = 250
	bBegins   = 332
	bCommits  = 484
	wakes     = 492
	tokenA    = 34
	tokenB    = 268
	fencesB   = 352
	fencesA   = 606
	clearance = 16 // from an arrow to its text
)

// Where the track are, from top to bottom.
const (
	trackA   = 92
	trackRow = 236
	lease    = trackRow + barHeight // the lower half of the row's track
	trackB   = 424
	axis     = 492
	belowA   = trackA + barHeight
	belowDB  = lease + barHeight
)

func draw() []byte {
	style := element("style")
	style.CSS = css()
	svg := element("svg", "xmlns", "http://www.w3.org/2000/svg",
		"role", "img", "aria-labelledby", "title description",
		"viewBox", fmt.Sprint("0 0 ", width, " ", height), "width", width, "height", height)
	svg.Children = []node{
		element("title", "id", "title").saying(title),
		element("desc", "id", "description").saying(description),
		style,
		box("paper", 1, width-1, 1, height-2),
		label("title", left, 40, title),
	}
	for _, part := range [][]node{row(), processA(), processB(), moral()} {
		svg.Children = append(svg.Children, part...)
	}
	out, err := xml.MarshalIndent(svg, "", "\t")
	if err != nil {
		panic(err) // encoding/xml fails only on types that it cannot write, and a node has none
	}
	return append(out, '\n')
}
