package main

// The three track and the line below them. Solid boxes are drawn last, because their borders cover
// the dashed ones.

func processA() []node {
	nodes := []node{
		label("strong", left, trackA-10, "Process A"),
		label("plain", wakes, trackA-10, "wakes"),
		label("plain", tokenA+clearance, belowA+64, "gets token 7"),
		label("end strong", fencesA-clearance, belowA+34, "Fence: 7 ≠ 8"),
		label("end strong no", fencesA-clearance, belowA+64, "ErrFenced, nothing written"),
		arrow(tokenA, belowA, trackRow),
		arrow(fencesA, belowA, trackRow),
	}
	nodes = append(nodes, paused()...)
	nodes = append(nodes, bar("a", left, pauses, trackA, "locks")...)
	nodes = append(nodes, bar("a", wakes, right, trackA, "transaction")...)
	return append(nodes, cross(fencesA, trackRow)...)
}

// paused shows the pause sign beside its text, because a dashed border alone is easy to miss.
func paused() []node {
	return []node{
		box("a stopped", pauses, wakes, trackA, barHeight),
		path("solid", "M%d %dh6v20h-6zm11 0h6v20h-6z", pauses+70, trackA+11),
		label("plain", pauses+98, trackA+29, "paused: GC, SIGSTOP"),
	}
}

func row() []node {
	nodes := []node{label("strong", left, belowDB+32, "Database row")}
	nodes = append(nodes, bar("a stopped", expires, bLocks, lease, "expired")...)
	nodes = append(nodes, bar("a", left, bLocks, trackRow, "owner A, token 7")...)
	nodes = append(nodes, bar("b", bLocks, right, trackRow, "owner B, token 8")...)
	nodes = append(nodes, bar("a", left, expires, lease, "lease")...)
	return append(nodes, bar("b", bLocks, right, lease, "lease")...)
}

func processB() []node {
	nodes := []node{
		label("strong end", bLocks-clearance, trackB+29, "Process B"),
		label("end", tokenB-clearance, belowDB+74, "gets token 8"),
		label("strong", fencesB+clearance, belowDB+34, "Fence: 8 = 8"),
		label("strong yes", fencesB+clearance, belowDB+64, "written"),
		arrow(tokenB, trackB, belowDB),
		arrow(fencesB, trackB, belowDB),
	}
	nodes = append(nodes, bar("b", bLocks, bBegins, trackB, "locks")...)
	nodes = append(nodes, bar("b", bBegins, bCommits, trackB, "transaction")...)
	return append(nodes, check(fencesB, belowDB)...)
}

func moral() []node {
	return []node{
		path("line", "M%d %dH%dm-9-7l9 7l-9 7", left, axis, right-60),
		label("end", right, axis+7, "time"),
		label("plain", left, axis+44, "Without Fence, A would overwrite B's work."),
	}
}
