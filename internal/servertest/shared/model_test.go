package shared

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/rowlockdb/rowlock/lease"
)

// This file is the model of a key that readers share, with the data that it protects, for
// porcupine. A history is right if the model allows some order of its calls, with each at a moment
// between its beginning and its end.

// call is something that a process did. It is unknown if the process was killed before it told, or
// told an error: then it may have taken effect, at any later time, or never. A write is never
// unknown: the row that it leaves tells.
type call struct {
	did     string
	token   lease.Token
	n       int64
	unknown bool
}

type mode string

const (
	free     mode = "free"
	alone    mode = "alone"
	together mode = "together"
	guess    mode = "guess" // granted again with a token that no process has told
)

// state is the last token, how its lease holds the key if it has not ended, and the data. That a
// lease has expired shows in the next grant alone.
type state struct {
	token lease.Token
	mode  mode
	n     int64
}

func (s state) after(c call) []any {
	if c.unknown {
		return append([]any{s}, s.perhaps(c)...)
	}
	mine := s.token == c.token
	switch {
	case (c.did == "lock" || c.did == "share") && c.token > s.token:
		return []any{state{c.token, map[string]mode{"lock": alone, "share": together}[c.did], s.n}}
	case c.did == "share" && mine && s.mode == together:
		return []any{s}
	case c.did == "write" && mine && s.mode == alone && c.n == s.n+1:
		return []any{state{s.token, s.mode, c.n}}
	case c.did == "read" && mine && s.mode == together && c.n == s.n:
		return []any{s}
	case c.did == "downgrade" && mine && s.mode == alone:
		return []any{state{s.token, together, s.n}}
	case c.did == "unlock" && mine && s.mode == alone:
		return []any{state{s.token, free, s.n}}
	case c.did == "unlock" && mine && s.mode == together: // others may share it still
		return []any{s}
	}
	return nil
}

// perhaps is what a call has done if it has taken effect.
func (s state) perhaps(c call) []any {
	mine := s.token == c.token && s.mode == alone
	switch {
	case c.did == "lock" || c.did == "share":
		return []any{state{s.token, guess, s.n}}
	case c.did == "downgrade" && mine:
		return []any{state{s.token, together, s.n}}
	case c.did == "unlock" && mine:
		return []any{state{s.token, free, s.n}}
	}
	return nil
}

func sharedModel() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init:  func() []any { return []any{state{mode: free}} },
		Equal: func(a, b any) bool { return a == b },
		Step:  func(s, in, _ any) []any { return s.(state).after(in.(call)) },
	}).ToModel()
}

// told is an event and which process has told it.
type told struct {
	by int
	event
}

// operations makes a history of what processes have told. committed has what each write that was
// committed has written, by its ID.
func operations(history []told, committed map[int64]int64) (ops []porcupine.Operation) {
	begun := map[int]told{} // what each process is about
	for _, e := range history {
		switch e.State {
		case "begins":
			begun[e.by] = e
		case "done", "failed":
			ops = append(ops, operation(begun[e.by], e, committed)...)
			delete(begun, e.by)
		}
	}
	for _, b := range begun {
		ops = append(ops, operation(b, b, committed)...)
	}
	return ops
}

func operation(b, e told, committed map[int64]int64) []porcupine.Operation {
	op := porcupine.Operation{ClientId: b.by, Call: b.At.UnixNano(), Return: e.At.UnixNano()}
	c := call{did: e.Did, token: e.Token, n: e.N, unknown: e.State != "done"}
	if n, there := committed[e.ID]; e.Did == "write" && c.unknown {
		if !there {
			return nil
		}
		c.n, c.unknown, op.Return = n, false, math.MaxInt64
	}
	switch {
	case c.did == "read" && c.unknown: // says nothing
		return nil
	case c.unknown:
		op.Return = math.MaxInt64
	}
	op.Input = c
	return []porcupine.Operation{op}
}

func describe(op porcupine.Operation) string {
	return fmt.Sprintf("%d–%d process %d: %+v", op.Call, op.Return, op.ClientId, op.Input)
}

// The model must refuse what must not happen.
func TestTheModelRefusesAWriterBesideReaders(t *testing.T) {
	at := time.Now()
	did := func(by int, what string, token lease.Token, n int64, from, to int) []told {
		e := event{Did: what, Token: token, N: n}
		b, d := e, e
		b.State, b.At = "begins", at.Add(time.Duration(from))
		d.State, d.At = "done", at.Add(time.Duration(to))
		return []told{{by, b}, {by, d}}
	}
	killed := func(by int, what string, token lease.Token, id int64, from int) []told {
		return []told{{by, event{
			Did: what, State: "begins", Token: token, ID: id, At: at.Add(time.Duration(from)),
		}}}
	}
	begin := [][]told{
		did(1, "lock", 5, 0, 0, 10), did(1, "write", 5, 1, 11, 20), did(1, "downgrade", 5, 0, 21, 30),
		did(2, "share", 5, 0, 11, 35), did(2, "read", 5, 1, 36, 40),
	}
	for want, histories := range map[bool][][][]told{
		true: {
			{did(1, "unlock", 5, 0, 41, 45), did(3, "lock", 6, 0, 41, 50), did(3, "write", 6, 2, 51, 60)},
			{did(3, "lock", 7, 0, 41, 60), did(2, "read", 5, 1, 41, 50)},
			{killed(3, "lock", 0, 0, 41), did(2, "read", 5, 1, 41, 50), did(2, "lock", 7, 0, 51, 60)},
			{
				did(3, "lock", 6, 0, 41, 50), killed(3, "write", 6, 9, 51), did(2, "share", 7, 0, 60, 70),
				did(2, "read", 7, 2, 71, 80),
			},
		},
		false: {
			{did(3, "lock", 6, 0, 41, 50), did(2, "read", 5, 1, 51, 60)},   // a stale reader
			{did(3, "lock", 6, 0, 41, 50), did(2, "unlock", 5, 0, 51, 60)}, // that shared it until then
			{did(1, "write", 5, 2, 41, 50)},                                // after the downgrade
			{did(2, "read", 5, 0, 41, 50)},                                 // of what was before the write
			{did(3, "lock", 5, 0, 41, 50)},                                 // one token twice
			{did(3, "lock", 6, 0, 41, 50), did(2, "share", 6, 0, 51, 60)},  // a reader beside a writer
			{did(3, "lock", 6, 0, 41, 50), did(3, "unlock", 6, 0, 51, 60), did(2, "share", 6, 0, 61, 70)},
			{
				did(3, "lock", 6, 0, 41, 50), killed(3, "write", 6, 8, 51), did(2, "share", 7, 0, 60, 70),
				did(2, "read", 7, 2, 71, 80),
			}, // a write that was not committed
		},
	} {
		for i, more := range histories {
			var all []told
			for _, part := range append(begin[:len(begin):len(begin)], more...) {
				all = append(all, part...)
			}
			ops := operations(all, map[int64]int64{9: 2})
			if got := porcupine.CheckOperations(sharedModel(), ops); got != want {
				t.Errorf("history %d that is %t: %t", i, want, got)
			}
		}
	}
}
