// Package check judges the history of an attack. What it finds is a violation, which no run may
// have, or a finding, which is counted: it may be right under the circumstances.
//
// The order of events is that of real time: A came before B if A was told before B was sent. Calls
// that overlap may have happened in either order, and nothing is concluded from them. The checker
// is complete for the kinds named here, because each is a property of two events or of one row of
// the journal; it needs no search for an order that would explain the history.
package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// Kind names a kind of violation or finding.
type Kind string

// Violations.
const (
	Twice        Kind = "token granted twice"
	Falls        Kind = "token falls"
	FalseUnlock  Kind = "unlock of a false holder"
	StaleWrite   Kind = "stale write committed"
	EarlyLoss    Kind = "lock lost before it could expire"
	HealthyLoss  Kind = "healthy lock lost"
	ValueTwice   Kind = "two holders wrote the same value"
	WithinLock   Kind = "lost update within one lock"
	TokenOrder   Kind = "journal: token falls as the value grows"
	TwoHolders   Kind = "journal: one token, two holders"
	LostWrite    Kind = "acknowledged write is not there"
	RefusedWrite Kind = "refused write is there"
	StrangeWrite Kind = "journal and history disagree"
	FencedWrite  Kind = "fenced write refused as if it were not"
	CounterWrong Kind = "counter is not the number of writes"
	StillHeld    Kind = "unlocked key is still held"
	Orphan       Kind = "key held by nobody after Close"
	Nothing      Kind = "nothing was tested"
	SharedToken  Kind = "reader has a writer's token"
	SharedStale  Kind = "reader's token is below one granted before"
	Unrepeated   Kind = "a fenced reader saw a writer"
	EffectTwice  Kind = "effect doubled"
	EffectGone   Kind = "acknowledged effect is not there"
	LateLoss     Kind = "loss told after its deadline"
	Goroutines   Kind = "goroutines left behind"
	KeptKey      Kind = "key held for long by no caller"
	BadCosts     Kind = "a call failed because of another key's row"
	BadGrant     Kind = "granted a row that cannot be read"
)

// Findings.
const (
	LostLocks   Kind = "locks lost"
	UnknownAsks Kind = "grants unknown"
	UnknownEnds Kind = "unlocks unknown"
	UnknownTxs  Kind = "commits unknown"
	LateCalls   Kind = "calls longer than their ctx + 2.5 s"
	Remaining   Kind = "keys held by killed processes"
	Stalls      Kind = "stalls above 300 ms"
	Errors      Kind = "other errors"
)

// Case is one violation or finding. At is when it was told, on the history's clock.
type Case struct {
	Kind Kind
	Key  string
	At   int64
	Text string
}

// Report is what was found.
type Report struct {
	Violations []Case
	Findings   []Case
}

func (r *Report) violation(k Kind, key string, at int64, format string, args ...any) {
	r.Violations = append(r.Violations, Case{k, key, at, fmt.Sprintf(format, args...)})
}

func (r *Report) finding(k Kind, key string, at int64, format string, args ...any) {
	r.Findings = append(r.Findings, Case{k, key, at, fmt.Sprintf(format, args...)})
}

// Input is a whole run.
type Input struct {
	Events   []history.Event
	Journal  []history.Row
	Counters map[string]int64
	// Left are the keys that were held when all processes had closed; Killed says that some could not.
	Left   []history.Row
	Killed bool
	// Settled says that Left were held for longer than a lease after that, for which there is no
	// excuse.
	Settled bool
	// Effects are what once has done.
	Effects []history.Row
	// Clock says that the database's clock was set: a lease may end early then, and nothing else may
	// be wrong.
	Clock bool
	// Undone are the times whose commits a failover has undone, or may have: what was acknowledged
	// then need not be there. Tokens must rise nevertheless.
	Undone []Span
	// Phases are the names of the phases. In each, something must have been granted.
	Phases []string
	// Writes says that there should be fenced transactions.
	Writes bool
	// HandOvers says that COMMITs should hand keys over.
	HandOvers bool
	// Protected says that some forget their fences, whose writes the data must refuse.
	Protected bool
	// Healthy are those in which nothing was stopped or slowed.
	Healthy map[int]bool
}

// All judges a run that is over.
func All(in *Input) *Report {
	r := in.calls()
	lost(r, in)
	corrupt(r, in.Events)
	shared(r, in)
	effects(r, in)
	losses := new(Report)
	Losses(losses, in.Events)
	r.Violations = append(r.Violations, in.excuse(losses.Violations)...)
	journal(r, in)
	left(r, in)
	alive(r, in)
	calls(r, in)
	byTime(r.Violations)
	byTime(r.Findings)
	return r
}

// excuse leaves out what a clock that is set may do to leases.
func (in *Input) excuse(cases []Case) []Case {
	return slices.DeleteFunc(cases, func(c Case) bool { return in.Clock && c.Kind == LateLoss })
}

// Calls judges grants, unlocks and writes alone. What it finds in a part of a history is there in
// all of it.
func Calls(events []history.Event) *Report {
	return (&Input{Events: events}).calls()
}

func (in *Input) calls() *Report {
	r := new(Report)
	for _, k := range byKey(in.Events) {
		k.twice(r)
		k.falls(r)
		k.deposed(r, in)
		if !in.Clock {
			k.early(r, in.Undone)
		}
	}
	byTime(r.Violations)
	return r
}

func byTime(cases []Case) {
	slices.SortStableFunc(cases, func(a, b Case) int { return int(min(max(a.At-b.At, -1), 1)) })
}

func ms(ns int64) string { return time.Duration(ns).Round(10 * time.Microsecond).String() }
