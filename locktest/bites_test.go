package locktest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// A suite that passes a broken store proves nothing. Here every property is shown a store that
// breaks it.

var flaws = slices.Concat(
	acquireFlaws, batchFlaws, renewFlaws, timeFlaws, keyFlaws, releaseFlaws, handOverFlaws, allFlaws, anyFlaws, limitFlaws, slotPassFlaws, cancelFlaws, tokenFlaws, sweepFlaws,
	inspectFlaws, fenceFlaws, fenceRenewFlaws, releaseTxFlaws, queueFlaws, claimFlaws, placeFlaws, hintFlaws, graphFlaws, edgeFlaws,
	raiseFlaws, sharedFlaws, sharedBatchFlaws, forceFlaws, traceFlaws,
)

func allProperties() map[string]property {
	all := make(map[string]property)
	for _, topic := range topics() {
		for _, p := range topic.properties {
			all[p.name] = p
		}
	}
	return all
}

// flawed opens stores with a flaw, for a suite in a hurry: these waits are in vain.
func flawed(f flaw) Harness {
	h := fencingHarness(nil)
	h.Open = func(tb testing.TB) lease.Store {
		m := newMutant(f.add)
		m.over = tb.Context().Done()
		return m
	}
	h.Load, h.patience = 300*time.Millisecond, 900*time.Millisecond
	return h
}

func TestPropertiesCatchFlaws(t *testing.T) {
	all := allProperties()
	for _, f := range flaws {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // most of the time goes in waiting for what does not come
			for _, name := range f.caught {
				p, ok := all[name]
				if !ok {
					t.Fatalf("no property is called %q", name)
				}
				if got := runUntilFailed(t, p, f); !got.Failed() || got.Skipped() {
					t.Errorf("%q passes (skipped: %t):\n%s", name, got.Skipped(), got.output())
				}
			}
		})
	}
}

// runUntilFailed gives a property that needs luck, as those of races do, several goes. Nearly all
// need one.
func runUntilFailed(t *testing.T, p property, f flaw) (got *recorder) {
	for range 30 {
		got = record(t, func(tb testing.TB) { p.check(newRig(tb, flawed(f))) })
		if got.Failed() {
			break
		}
	}
	return got
}

func TestEveryPropertyCatchesAFlaw(t *testing.T) {
	all := allProperties()
	for _, f := range flaws {
		for _, name := range f.caught {
			delete(all, name)
		}
	}
	for name := range all {
		t.Errorf("no flaw shows that %q can fail", name)
	}
}

func TestPropertiesHaveDifferentNames(t *testing.T) {
	n := 0
	for _, topic := range topics() {
		n += len(topic.properties)
	}
	if all := allProperties(); len(all) != n {
		t.Errorf("%d properties have %d names", n, len(all))
	}
}

// TestRandomCatchesFlaws leaves out what random calls, one at a time, do not do.
func TestRandomCatchesFlaws(t *testing.T) {
	for _, name := range []string{
		"acquire does not look who holds the key", "a loser is not told of the holder",
		"a repeated acquire is told that the key is held", "a repeated acquire is a grant of its own",
		"owners are one for the whole process", "an expired lease is for ever", "a takeover keeps the token",
		"an owner gets his expired lease back", "a renewal says that an expired lease is extended",
		"a renewal revives an expired lease", "a renewal revives a released lease", "a renewal creates the row",
		"a renewal takes the key back", "a renewal ignores the token", "a renewal ignores the owner", "a lease never ends",
		"a release does nothing", "a release never says gone", "token 0 is a token like any other",
		"a release ignores the token", "a release ignores the owner", "a release ignores the term",
		"a release removes the row", "tokens begin at 1 again after a sweep", "a sweep takes held rows along",
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(flaws, func(f flaw) bool { return f.name == name })
			if i < 0 {
				t.Fatal("no such flaw")
			}
			h := flawed(flaws[i])
			h.patience = 0
			if got := record(t, func(tb testing.TB) { random(newRig(tb, h), 0) }); !got.Failed() {
				t.Errorf("random calls find nothing:\n%s", got.output())
			}
		})
	}
}

// TestSkipsAreLoud shows a store without abilities and a harness without hooks.
func TestSkipsAreLoud(t *testing.T) {
	h := fencingHarness(func() lease.Store {
		f := newFencing()
		return plain{f, f}
	})
	h.SetToken = nil
	var skipped int
	for name, p := range allProperties() {
		if strings.Contains(name, "sweeper runs") {
			continue
		}
		got := record(t, func(tb testing.TB) { p.check(newRig(tb, h)) })
		if got.Failed() {
			t.Errorf("%q: %s", name, got.output())
		}
		if got.Skipped() {
			skipped++
			if got.output() == "" {
				t.Errorf("%q skips without saying why", name)
			}
		}
	}
	want := len(fenceProperties) + len(fenceBesideProperties) + len(fenceRenewProperties) + len(releaseTxProperties) + len(sweepProperties) + len(handOverProperties) + len(raiseProperties) + len(togetherProperties) + len(anyProperties) + len(limitProperties) + len(slotPassProperties) + len(forceProperties) + len(traceProperties)
	want += len(queueProperties) + len(queueGrantProperties) + len(claimProperties) + len(placeProperties) + len(queueRaceProperties)
	want += len(sharedProperties) + len(sharedBatchProperties) + len(sharedRaceProperties)
	want += len(interestProperties) + len(notifyProperties) + len(graphProperties) + len(graphWideProperties)
	if want += 3; skipped != want { // and two of the tokens, and one of listings
		t.Errorf("%d properties skipped, want %d", skipped, want)
	}
}

// plain is a lease.Store and nothing more.
type plain struct {
	lease.Store
	of *fencing
}

func (p plain) base() *fencing { return p.of }

func TestHooksAreRequired(t *testing.T) {
	if got := record(t, func(tb testing.TB) { requireHooks(tb, Harness{}) }); !got.Failed() {
		t.Error("an empty harness is accepted")
	}
}

func TestATopicThatDoesNotExistCannotBeLeftOut(t *testing.T) {
	for name, wrong := range map[string]bool{"acquire any": false, "aquire any": true, "": true} {
		got := record(t, func(tb testing.TB) { requireTopics(tb, []string{"renew", name}) })
		if got.Failed() != wrong {
			t.Errorf("%q: failed %t, want %t\n%s", name, got.Failed(), wrong, got.output())
		}
	}
}

func TestATopicThatIsLeftOutIsNotRun(t *testing.T) {
	h := fencingHarness(nil)
	for _, topic := range topics() {
		h.Without = append(h.Without, topic.name)
	}
	h.Open = func(tb testing.TB) lease.Store {
		tb.Error("a property runs")
		return nil
	}
	Run(t, h)
}
