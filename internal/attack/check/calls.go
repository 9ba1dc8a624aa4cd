package check

import (
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// slack is how much longer than its ctx a call may take.
const slack = 2500 * time.Millisecond

// alive finds a run that has proved nothing, because nothing happened in it.
func alive(r *Report, in *Input) {
	grants := make([]int, len(in.Phases))
	writes, unfenced, passes := 0, 0, 0
	for i := range in.Events {
		if e := &in.Events[i]; e.Passes && e.Result == history.OK {
			passes++
		}
		switch e := &in.Events[i]; {
		case e.Kind == history.Grant && e.Result == history.OK && e.Phase < len(grants):
			grants[e.Phase]++
		case e.Kind == history.Write && e.Result == history.OK:
			writes++
		case e.Result == history.Unfenced:
			unfenced++
			if e.Token != 0 { // it was of a holder that had fenced
				r.violation(FencedWrite, e.Key, e.Told, "%s of %s under token %d: %s", e.Act, e.Process, e.Token, e.Err)
			}
		}
	}
	for i, n := range grants {
		if n == 0 {
			r.violation(Nothing, "", 0, "phase %q has no grant", in.Phases[i])
		}
	}
	if in.Writes && writes == 0 {
		r.violation(Nothing, "", 0, "no fenced transaction was committed")
	}
	if in.HandOvers && passes == 0 {
		r.violation(Nothing, "", 0, "no COMMIT has handed a key over")
	}
	if in.Protected && unfenced == 0 {
		r.violation(Nothing, "", 0, "no write without a fence was refused")
	}
}

// unknown are the findings for an unknown outcome.
var unknown = map[history.Kind]Kind{history.Grant: UnknownAsks, history.Unlock: UnknownEnds, history.Write: UnknownTxs}

// calls counts what is worth knowing of calls that did nothing wrong.
func calls(r *Report, in *Input) {
	for i := range in.Events {
		e := &in.Events[i]
		switch {
		case e.Kind == history.Stall:
			r.finding(Stalls, "", e.Told, "%s of %s (%s)", ms(e.Told-e.Sent), e.Process, e.Act)
		case e.Result == history.Unknown && unknown[e.Kind] != "":
			r.finding(unknown[e.Kind], e.Key, e.Told, "%s by %s: %s", e.Act, e.Process, e.Err)
		case e.Result == history.Other:
			r.finding(Errors, e.Key, e.Told, "%s of %s by %s: %s", e.Kind, e.Act, e.Process, e.Err)
		}
		if e.Limit > 0 && e.Told-e.Sent > int64(e.Limit+slack) {
			r.finding(LateCalls, e.Key, e.Told, "%s of %s by %s took %s, allowed %s", e.Kind, e.Act, e.Process, ms(e.Told-e.Sent), e.Limit)
		}
	}
}
