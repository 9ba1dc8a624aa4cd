package model

import (
	"fmt"
	"strings"
)

// The kinds of steps.
const (
	rowExpires uint8 = iota
	rowReaped
	recordExpires
	recordDropped
	arrives
	arrivesStays
	answerLost
	vanishes
	asks
	givesUp
	crashes
	forgets
	writes
	replicaFollows
	failsOver
	audits
	taken
	finished
	reappears
	looks
	looksNoMore
)

// step leads from a state to another.
type step struct {
	what, actor uint8
	request     request
	reply       reply
}

// In the texts, %p is the process, %q the request and %a the answer.
var stepTexts = [...]string{
	rowExpires:     "the lease that the row names runs out",
	rowReaped:      "the reaper deletes the row",
	recordExpires:  "the lease that the record names runs out",
	recordDropped:  "the sealed record is removed",
	arrives:        "%q arrives: %a",
	arrivesStays:   "%q arrives, and will come again: %a",
	answerLost:     "%q arrives: %a, which is lost",
	vanishes:       "%q never arrives",
	asks:           "%p asks: %q",
	givesUp:        "%p gives up waiting",
	crashes:        "%p begins anew",
	forgets:        "%p forgets where the key was",
	writes:         "%p writes under its fence",
	replicaFollows: "the replica follows",
	failsOver:      "the database fails over to the replica",
	audits:         "an audit reads the record",
	taken:          "the key is taken back by force",
	finished:       "the wait is over, and the key returns to the table",
	reappears:      "the cluster reappears",
	looks:          "%p's look at the row confirms where the key is",
	looksNoMore:    "%p's last look at the row counts no more",
}

func (m *Model) text(s step) string {
	return strings.NewReplacer(
		"%p", m.name(s.actor), "%q", m.requestText(s.request), "%a", s.reply.String(),
	).Replace(stepTexts[s.what])
}

func (m *Model) name(i uint8) string {
	if i < m.Clients {
		return fmt.Sprintf("client %d", i+1)
	}
	return fmt.Sprintf("mover %d", i-m.Clients+1)
}

var verbTexts = [...]string{
	none:           "nothing",
	acquireTable:   "acquire at the table",
	acquireCluster: "acquire at the cluster in",
	releaseTable:   "release at the table",
	releaseCluster: "release at the cluster",
	depart:         "Depart",
	openUp:         "Open",
	openAhead:      "Open",
	seal:           "Seal",
	handBack:       "Return",
	read:           "read the row",
	recall:         "Recall",
	write:          "write",
	reap:           "reap",
}

// requestText names what the request is conditional on.
func (m *Model) requestText(q request) string {
	text := verbTexts[q.verb]
	switch q.verb {
	case acquireCluster, openUp, openAhead, handBack, recall:
		text += fmt.Sprintf(" epoch %d", q.epoch)
	case releaseTable, releaseCluster, depart, seal:
		text += fmt.Sprintf(" with %v", q.token())
	}
	if q.verb == recall {
		return text
	}
	return text + " of " + m.name(q.from)
}

func (t token) String() string { return fmt.Sprintf("%d.%d", t.epoch, t.count) }

func (a reply) String() string {
	switch a.says {
	case granted:
		return "granted " + a.token.String()
	case moved:
		return fmt.Sprintf("it is with the cluster in epoch %d", a.token.epoch)
	}
	return [...]string{refused: "no", done: "done", older: "not open yet", newer: "that epoch is past", closed: "sealed"}[a.says]
}

// String shows the servers. The steps show what processes believe.
func (s *state) String() string {
	r := &s.db.row
	text := "no row, floor " + s.db.floor.String()
	if r.exists {
		placement := [...]string{"row at the table", "row with the cluster", "row returning"}[r.placement]
		text = placement + " " + r.token.String() + ownerText(r.owner, r.expired)
	}
	text += [...]string{", no record", ", record open ", ", record sealed "}[s.record.phase]
	if s.record.phase != absent {
		text += s.record.token.String() + ownerText(s.record.owner, false)
	}
	return text
}

func ownerText(owner uint8, expired bool) string {
	switch {
	case owner == 0:
		return ""
	case expired:
		return " (expired)"
	}
	return " (held)"
}
