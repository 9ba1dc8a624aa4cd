package proxy

import (
	"bufio"
	"regexp"
	"strings"
	"time"
)

// Fate is what becomes of a statement.
type Fate int

const (
	// Pass sends it and its reply on.
	Pass Fate = iota
	// Unsent ends the connection before the server has a byte of it.
	Unsent
	// Half ends the connection in the middle of it.
	Half
	// ReplyLost ends the connection when the server has executed it, before the client has a byte of
	// the reply.
	ReplyLost
	// ReplyHalf does the same in the middle of the reply.
	ReplyHalf
	// Late ends the client's connection at once, and the server gets the statement later, as a network
	// delivers what its sender has given up.
	Late
)

// Fates are all but Pass.
var Fates = []Fate{Unsent, Half, ReplyLost, ReplyHalf, Late}

func (f Fate) String() string {
	return [...]string{"passed", "unsent", "half sent", "reply lost", "half a reply", "late"}[f]
}

// Statement is what a client sends before it waits for a reply.
type Statement struct {
	// Kind is rowlock's name of it, or its first word for the user's own; "" for what executes
	// nothing.
	Kind string
	// Late is for how long the fate Late keeps it back.
	Late  func() time.Duration
	bytes []byte
}

// Protocol makes the state of one connection.
type Protocol func() talk

// talk is the state of a connection. Its methods are called by different goroutines.
type talk interface {
	// read returns what the client sends next.
	read(in *bufio.Reader) (Statement, error)
	// reply looks at bytes of the server, and reports whether a reply has ended with them.
	reply(b []byte) bool
}

var named = regexp.MustCompile(`/\* rowlock ([a-z0-9-]+)`)

// kind names the kind of an SQL statement.
func kind(text string) string {
	if m := named.FindStringSubmatch(text[:min(len(text), 200)]); m != nil {
		return m[1]
	}
	fields := strings.Fields(strings.ToLower(text[:min(len(text), 200)]))
	if len(fields) == 0 {
		return "empty"
	}
	switch first := strings.Trim(fields[0], ";"); first {
	case "begin", "start":
		return "begin"
	case "select", "insert", "update", "delete", "set":
		return "user's " + first
	case "--": // as pgx's ping
		return "driver's " + strings.Join(fields[1:], " ")
	default:
		return first
	}
}
