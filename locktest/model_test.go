package locktest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/rowlockdb/rowlock/lease"
)

// The model is shown histories of one key, written as calls and their answers: a token granted,
// yes, no, vague, or ? for unknown. Calls come one after the other; those after "at once:" overlap.

func TestModelAllows(t *testing.T) {
	for _, history := range []string{
		"ann acquire 1, ann renew 1 yes, bob acquire no, ann release 1 yes, ann release 1 no, ann renew 1 no, bob acquire 2",
		"ann acquire 5, ann release 5 yes, bob acquire 9",
		"ann acquire 1, bob acquire no, ann acquire 1",
		"ann acquire 1, expire, bob acquire 2",
		"at once: ann acquire 1, bob acquire no",
		"at once: bob acquire no, ann acquire 1",
		"ann acquire vague, ann acquire 1",
		"ann acquire 1, ann renew 1 vague, ann renew 1 yes",
		"ann acquire 1, expire, ann release 1 yes, ann release 1 no",
		"ann acquire 1, expire, ann release 1 no",
		"ann acquire 7, ann release 0 yes",
		"ann acquire ?, bob acquire no, ann acquire 3, ann renew 3 yes",
		"ann acquire ?, bob acquire 1, bob renew 1 yes",
		"ann acquire ?, bob acquire 1, bob release 1 yes, bob acquire no, ann release 0 yes",
		"ann acquire ?, bob acquire no, ann renew 9 yes, ann release 9 yes, bob acquire 10",
		"ann acquire 1, ann release 1 ?, ann renew 1 yes, bob acquire 2",
		"ann acquire 1, ann renew 1 ?, bob acquire no",
	} {
		if !porcupine.CheckOperations(lockModel(), parse(t, history)) {
			t.Errorf("the model forbids %s", history)
		}
	}
}

func TestModelForbids(t *testing.T) {
	for what, history := range map[string]string{
		"two owners":                      "at once: ann acquire 1, bob acquire 2",
		"a token again":                   "ann acquire 1, ann release 1 yes, bob acquire 1",
		"a lower token":                   "ann acquire 5, expire, bob acquire 4",
		"a second grant":                  "ann acquire 1, ann acquire 2",
		"held by yourself":                "ann acquire 1, ann acquire no",
		"held by yourself, vaguely":       "ann acquire 1, ann acquire vague",
		"held by nobody":                  "ann acquire no",
		"an expired lease revived":        "ann acquire 1, expire, ann renew 1 yes",
		"a released lease revived":        "ann acquire 1, ann release 1 yes, ann renew 1 yes",
		"lost while held":                 "ann acquire 1, ann renew 1 no",
		"another's renewal":               "ann acquire 1, bob renew 1 yes",
		"a renewal with another token":    "ann acquire 1, ann renew 2 yes",
		"busy with nothing":               "ann renew 1 vague",
		"gone while held":                 "ann acquire 1, ann release 1 no",
		"freed twice":                     "ann acquire 1, ann release 1 yes, ann release 1 yes",
		"freed by another":                "ann acquire 1, bob release 0 yes",
		"freed with another token":        "ann acquire 1, ann release 2 yes",
		"nobody's release":                "nobody release 0 yes",
		"unknown, and two owners":         "ann acquire ?, bob acquire 1, ann acquire 2",
		"unknown, and a token again":      "ann acquire 4, expire, bob acquire ?, bob acquire 4",
		"an effect before it was asked":   "bob acquire no, ann acquire ?",
		"an unknown renewal that revives": "ann acquire 1, expire, ann renew 1 ?, bob acquire no",
	} {
		if porcupine.CheckOperations(lockModel(), parse(t, history)) {
			t.Errorf("the model allows %s: %s", what, history)
		}
	}
}

func parse(t *testing.T, text string) (history []porcupine.Operation) {
	text, atOnce := strings.CutPrefix(text, "at once: ")
	for i, event := range strings.Split(text, ", ") {
		op := parseCall(t, strings.Fields(event))
		op.Call = int64(2 * i)
		switch {
		case op.Output.(reply).unknown:
			op.Return = never
		case atOnce:
			op.Return = 1000
		default:
			op.Return = int64(2*i + 1)
		}
		history = append(history, op)
	}
	return history
}

func parseCall(t *testing.T, words []string) porcupine.Operation {
	c := call{verb: expire, Lease: lease.Lease{Key: "k"}}
	answer := words[len(words)-1]
	if len(words) > 1 {
		c.Owner = map[string]lease.Owner{"ann": {1}, "bob": {2}, "nobody": {}}[words[0]]
		c.verb = map[string]verb{"acquire": acquire, "renew": renew, "release": release}[words[1]]
	}
	if len(words) == 4 {
		c.Token = number(t, words[2])
	}
	r, ok := map[string]reply{"yes": {yes: true}, "no": {}, "vague": {vague: true}, "?": {unknown: true}, "expire": {}}[answer]
	if !ok {
		r = reply{yes: true, token: number(t, answer)}
	}
	return porcupine.Operation{Input: c, Output: r}
}

func number(t *testing.T, text string) lease.Token {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return lease.Token(n)
}
