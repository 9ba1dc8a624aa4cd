package election

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/rowlockdb/rowlock/lease"
)

// This file is the model of an election for porcupine. A history is right if the model allows some
// order of its calls, with each at a moment between its beginning and its end.

// call is a term that begins, or a write of a term. It is unknown if its process was killed before
// it told: then it may have taken effect, at any later time, or never.
type call struct {
	write   bool
	unknown bool
	term    lease.Token
}

// state is the present term. guess: it is that or a later one, which no process has told.
type state struct {
	term  lease.Token
	guess bool
}

func (s state) after(c call) []any {
	switch {
	case c.write && s.term == c.term && !s.guess:
		return []any{s}
	case c.write:
		return nil
	case c.unknown:
		return []any{s, state{s.term + 1, true}}
	case c.term > s.term, s.guess && c.term == s.term:
		return []any{state{term: c.term}}
	}
	return nil
}

func electionModel() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init:  func() []any { return []any{state{}} },
		Equal: func(a, b any) bool { return a == b },
		Step:  func(s, in, _ any) []any { return s.(state).after(in.(call)) },
	}).ToModel()
}

// operations makes a history of what candidates have told. Each is a client: what it does is one
// after the other. A refused write says nothing: a leader that has lost its trust refuses by
// itself.
func operations(history []told) (ops []porcupine.Operation) {
	free := map[int]time.Time{} // since when a candidate may have begun its next term
	for _, e := range history {
		op := porcupine.Operation{ClientId: e.by.id, Return: e.At.UnixNano()}
		switch e.Did {
		case "stands", "ended":
			free[e.by.id] = e.At
			continue
		case "leads":
			op.Call, op.Input = free[e.by.id].UnixNano(), call{term: e.Term}
			delete(free, e.by.id)
		case "wrote":
			op.Call, op.Input = e.From.UnixNano(), call{write: true, term: e.Term}
		case "stopped":
			delete(free, e.by.id)
			continue
		default:
			continue
		}
		ops = append(ops, op)
	}
	for id, since := range free { // killed while it stood, or after it was granted a term
		ops = append(ops, porcupine.Operation{
			ClientId: id, Call: since.UnixNano(), Return: math.MaxInt64, Input: call{unknown: true},
		})
	}
	return ops
}

// The model must refuse what must not happen.
func TestTheModelRefusesTwoLeaders(t *testing.T) {
	at := time.Now()
	e := func(id int, did string, term lease.Token, from, to int) told {
		return told{&candidate{id: id}, event{
			Did: did, Term: term, From: at.Add(time.Duration(from)), At: at.Add(time.Duration(to)),
		}}
	}
	begin := []told{e(1, "stands", 0, 0, 0), e(2, "stands", 0, 0, 0), e(1, "leads", 5, 0, 10)}
	for want, histories := range map[porcupine.CheckResult][][]told{
		porcupine.Ok: {
			{e(1, "wrote", 5, 11, 20), e(2, "leads", 6, 0, 30), e(2, "wrote", 6, 31, 40)},
			{e(1, "wrote", 5, 11, 40), e(2, "leads", 6, 0, 30), e(2, "wrote", 6, 31, 40)}, // overlap
			{e(1, "wrote", 5, 11, 20), e(1, "ended", 5, 0, 21), e(1, "leads", 7, 0, 30)},  // 2 was killed
			{e(2, "leads", 3, 0, 20)}, // the grants were in the other order
		},
		porcupine.Illegal: {
			{e(2, "leads", 6, 0, 30), e(2, "wrote", 6, 31, 40), e(1, "wrote", 5, 41, 50)}, // a stale write
			{e(2, "leads", 5, 0, 30)},                           // one term twice
			{e(1, "ended", 5, 0, 20), e(1, "leads", 5, 21, 30)}, // a term that does not grow
			{e(1, "ended", 5, 0, 20), e(1, "leads", 4, 21, 30)}, // nor falls
			{e(2, "wrote", 6, 11, 20)},                          // a write before its term
		},
	} {
		for i, more := range histories {
			if got := porcupine.CheckOperations(electionModel(), operations(append(begin[:3:3], more...))); got != (want == porcupine.Ok) {
				t.Errorf("history %d that is %s: %t", i, want, got)
			}
		}
	}
}

func describe(op porcupine.Operation) string {
	c, what := op.Input.(call), "leads"
	if c.write {
		what = "writes"
	}
	return fmt.Sprintf("%d–%d candidate %d %s, term %d, unknown %t",
		op.Call, op.Return, op.ClientId, what, c.term, c.unknown)
}
