package main

import (
	"path"
	"strings"
)

// step is tests of one package. They run before those of the next step.
type step struct {
	pkg string
	// run and skip are patterns of go test's.
	run, skip string
}

// topics are the topics of locktest for a statement that begins with a word.
var topics = []struct{ begins, topics string }{
	{"renew", "renew|batch"},
	{"fence", "fence|renewing fence"},
	{"release-tx", "release in a transaction"},
	{"release", "release|batch"},
	{"hand-over", "hand over"},
	{"raise", "raise"},
	{"dead", "sweep"},
	{"reap", "sweep"},
	{"floor", "sweep"},
	{"apply-all", "acquire all"},
	{"apply-any", "acquire any|limit"},
	{"apply-within", "hand over slots"},
	{"apply", "batch|release|acquire all"},
	{"create", "batch|acquire any|sweep"},
	{"limit", "limit|hand over slots"},
	{"force", "force release"},
	{"queue", "queue"},
	{"pass", "queue"},
	{"places", "queue"},
	{"acquire", "acquire|tokens|race|sweep"},
}

// elsewhere are the packages that test a file's statements, the likeliest first. internal/table
// comes first for what is not here, and after its conformance.
var elsewhere = map[string][]string{
	"cas":        {"optimistic"},
	"force":      {"internal/table", "internal/servertest/fence"},
	"hold":       {"forupdate"},
	"latch":      {"latch", "internal/servertest/corrupt"},
	"limit":      {"internal/table", "semaphore", "internal/servertest/semaphore"},
	"move":       {"internal/table", "paxosbridge"},
	"once":       {"once", "once/oncehttp"},
	"queue":      {"internal/table", "internal/servertest/wait"},
	"shared":     {"internal/table", "internal/servertest/shared", "internal/servertest/fence"},
	"token":      {"tokenfence"},
	"forupdate":  {"forupdate"},
	"optimistic": {"optimistic"},
	"tokenfence": {"tokenfence"},
	"statements": {
		"internal/table", "optimistic", "internal/servertest/fence", "internal/servertest/hazard",
		"internal/servertest/fault", "internal/servertest/wait",
	},
}

// direct are patterns of tests that run a file's statements by themselves, in the file's first
// package. They take a moment, and run before all others.
var direct = map[string]string{
	"cas":   "DecidesForItself|WhateverWasRead|MadeAboveItsFloorAndTheEra|FindsOnlyWhatIsDead|ThatIsStillDead",
	"era":   "ErasAreDropped|FreshBecauseAnEraIs|HistoryIsTheNewest",
	"hold":  "TheHolderThatIsGone|PassedOver|NotFreeForAnother|RowsThatLack|FindsTheDead",
	"latch": "DecidesForItself|StaysUntilItExpires|OfThisBarrier|OfTheGeneration|GenerationsGrow|EachGenerationOnce|ThatIsBeingKept",
	"once":  "SameKeyOfAnotherTenant|TakesTheOldest|^TestALookAhead|^TestALookSees",

	"force":  "EachWriteDecidesForItself|^TestAForcedRelease|StatementsOfAGroup",
	"limit":  "^TestEach(Choice|ChangeOfALimit|Slot)",
	"move":   "EachWriteDecidesForItself|^TestEach(Recall|Fence)",
	"queue":  "^TestEach(Claim|Pass|Ticket|Dead|Place|Turn|Call|Floor|GrantThat)",
	"shared": "EachWriteDecidesForItself|StatementsOfAGroup",
	"statements": "^TestEach(Grant|Update|Change|Choice|Batch|Row|Statement|Renewal|Release|Relaxed|Call|Write|" +
		"Sweep|Walk|Floor|Fence)|HandedOver|ConfirmedIsNever",
}

// between has another client come before each statement of a call.
const between = "^TestNoWriteTrusts"

// narrow are patterns of tests that run before all others of a file's first package.
var narrow = map[string]string{
	"cas":        "Forgotten|^TestConformance$|^TestATaker|^TestALate|^TestAFence",
	"era":        "Forgotten|OneEra|HistoryThatGoesBack|CopiedBack",
	"force":      between + "|Forced",
	"limit":      "Forgotten",
	"move":       between + "|Moved|Placement|Recall|GivesAKeyAway",
	"queue":      between + "|Forgotten|OnlyAwaits|Ticket|Joins",
	"shared":     between + "|Intend|Members|TouchesNoMember|Abandoned|Downgrade",
	"statements": between + "|Forgotten|Floor|EveryPage|TokensHaveRunOut|NotConfirmed",
}

// tests returns the steps that must kill a mutant, the narrowest first.
func (m *mutant) tests() (out []step) {
	packages, ok := elsewhere[m.subject()]
	if !ok {
		packages = elsewhere["statements"]
	}
	for _, first := range []map[string]string{direct, narrow} {
		if run, ok := first[m.subject()]; ok {
			out = append(out, step{pkg: packages[0], run: run, skip: m.others()})
		}
	}
	if packages[0] == "internal/table" {
		out = append(out, m.conformance()...)
	}
	for _, p := range packages {
		out = append(out, step{pkg: p, run: ".", skip: m.others()})
	}
	return out
}

// subject is what the mutant's tests are found by: its file's name, or that of its Go package.
func (m *mutant) subject() string {
	dir, base := path.Split(m.file)
	name := strings.TrimSuffix(strings.TrimSuffix(base, ".sql"), ".go")
	switch {
	case strings.HasPrefix(dir, "dialect/") && strings.HasSuffix(base, ".go") && name == folder(m.db):
		return "optimistic" // where a dialect says how a version is read
	case strings.HasPrefix(dir, "dialect/"):
		return name
	}
	return path.Clean(dir)
}

func (m *mutant) conformance() []step {
	pkg, every := "internal/table/conformance", "TestConformance/(update|insert)/^"+m.db+"$"
	whole := []step{
		{pkg: pkg, run: every + "|^TestRandomCalls$/^" + m.db + "$"},
	}
	if m.subject() == "shared" {
		return append([]step{{pkg: pkg, run: "TestConformance/update/^" + m.db + "$/^shared$"}}, whole...)
	}
	for _, t := range topics {
		if strings.HasPrefix(m.statement, t.begins) {
			first := step{pkg: pkg, run: "TestConformance/update/^" + m.db + "$/^(" + t.topics + ")$"}
			return append([]step{first}, whole...)
		}
	}
	return whole
}

// others is a pattern of the subtests on the other databases: they cannot kill the mutant.
func (m *mutant) others() string {
	var names []string
	for _, db := range databases {
		if db != m.db {
			names = append(names, db)
		}
	}
	name := "/^(" + strings.Join(names, "|") + ")$"
	return "." + name + "|./." + name
}
