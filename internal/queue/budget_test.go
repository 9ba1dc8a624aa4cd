package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestABudgetIsSpentAfterSoManyGrantsAndSoLong(t *testing.T) {
	r := budget{Grants: 3, For: time.Second}
	now := time.Now()
	for token := range int64(3) {
		if r.Spent("k", now.Add(time.Hour)) {
			t.Errorf("over after %d grants", token)
		}
		r.Granted("k", token+1, now, 0)
	}
	if r.Spent("k", now.Add(time.Second-1)) {
		t.Error("over too soon")
	}
	if !r.Spent("k", now.Add(time.Second)) {
		t.Error("not over")
	}
	if r.Spent("k", now.Add(time.Hour)) {
		t.Error("over twice")
	}
}

// A token that is not the next one is another process's grant between ours.
func TestAnotherProcesssGrantEndsAStreak(t *testing.T) {
	r := budget{Grants: 3, For: time.Second}
	now := time.Now()
	for _, token := range []int64{1, 2, 4, 5} {
		r.Granted("k", token, now, 0)
	}
	if r.Spent("k", now.Add(time.Hour)) {
		t.Error("counted over another's grant")
	}
	r.Granted("k", 6, now, 0)
	if !r.Spent("k", now.Add(time.Hour)) {
		t.Error("not over")
	}
}

// Keys that are used once are forgotten; one that is used again and again is not.
func TestABudgetForgetsKeysUsedOnce(t *testing.T) {
	r := budget{Grants: 100, For: 0}
	now := time.Now()
	for i := range 100_000 {
		r.Granted(fmt.Sprint("once", i), 1, now, 0)
		if i%1000 == 0 {
			r.Granted("hot", int64(1+i/1000), now, 0)
		}
	}
	if !r.Spent("hot", now) {
		t.Error("a key in use was forgotten")
	}
	if r.Spent("once0", now) {
		t.Error("a key used once is remembered")
	}
}

// A process that asks again at once keeps the key for a turn; then it leaves it to others, once.
func TestATurnEndsAfterItsTime(t *testing.T) {
	const slice, room = 5 * time.Millisecond, 10 * time.Millisecond
	var r budget
	now := time.Now()
	pair := func(token int64) (returns bool) {
		r.Granted("k", token, now, 0)
		now = now.Add(2 * time.Millisecond)
		return r.Released("k", now, slice, true)
	}
	for token, want := range []struct{ returns, yields bool }{{}, {returns: true}, {yields: true}} {
		if returns := pair(int64(token + 1)); returns != want.returns {
			t.Errorf("release %d: returns %t", token, returns)
		}
		if yields := r.Asks("k", now, room); yields != want.yields {
			t.Errorf("release %d: yields %t", token, yields)
		}
	}
	if r.Asks("k", now.Add(room), room) {
		t.Error("yields after the others had their time")
	}
	pair(10)
	if r.Asks("k", now, room) {
		t.Error("another's grant did not begin a new turn")
	}
}

// A process that was away is not waited for the next time.
func TestAProcessThatWasAwayIsNotExpectedToReturn(t *testing.T) {
	var r budget
	now := time.Now()
	for i, away := range []time.Duration{0, 2 * soon, 0} {
		r.Granted("k", int64(i+1), now, 0)
		returns := r.Released("k", now, time.Hour, true)
		if want := i == 1; returns != want {
			t.Errorf("release %d: returns %t", i, returns)
		}
		now = now.Add(away)
		r.Asks("k", now, 0)
	}
}

// Only the last look counts, and only for a while.
func TestABudgetKnowsForAWhileThatNoOtherProcessWaits(t *testing.T) {
	b := budget{Grants: 2, For: time.Second}
	now := time.Now()
	if b.Looked("never", false, now); b.Of("never").Quiet(now, time.Second) {
		t.Error("a key without a grant is remembered")
	}
	b.Granted("k", 1, now, 0)
	if b.Of("k").Quiet(now, time.Second) {
		t.Error("quiet without a look")
	}
	b.Looked("k", false, now)
	b.Granted("k", 3, now, 0) // another process had it in between
	for age, want := range map[time.Duration]bool{0: true, time.Second - 1: true, time.Second: false} {
		if b.Of("k").Quiet(now.Add(age), time.Second) != want {
			t.Errorf("quiet %s after the look: %t", age, !want)
		}
	}
	if b.Looked("k", true, now); b.Of("k").Quiet(now, time.Second) {
		t.Error("quiet after a look that has found a process")
	}
}

// Streaks are used again for other keys: none may be two keys' at once.
func TestEachKeyHasAStreakOfItsOwn(t *testing.T) {
	b := budget{Grants: 1 << 30, For: time.Hour}
	now, tokens := time.Now(), make(map[string]int64)
	for range 20_000 { // keys come again after a few, after two generations, or never
		key := fmt.Sprint(int(math.Exp2(rand.Float64() * 13)))
		if token := b.Of(key).Token; token != 0 && token != tokens[key] {
			t.Fatalf("%s: token %d, and it was granted %d", key, token, tokens[key])
		}
		tokens[key]++
		b.Granted(key, tokens[key], now, 0)
	}
	for key, want := range tokens {
		if token := b.Of(key).Token; token != 0 && token != want {
			t.Errorf("%s: token %d, and it was granted %d", key, token, want)
		}
	}
}

func TestManyKeysAllocateNothing(t *testing.T) {
	b, now := budget{Grants: 2, For: time.Second}, time.Now()
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	use := func() {
		for _, key := range keys {
			b.Granted(key, 1, now, 0)
			b.Looked(key, false, now)
			b.Released(key, now, time.Second, false)
		}
	}
	use()
	if n := testing.AllocsPerRun(3, use); n > 10 {
		t.Errorf("%v allocations for %d grants", n, len(keys))
	}
}

// Two processes that each find the key free when the other has just released it would otherwise
// keep it from all others: each streak is one grant long.
func TestATimeSliceGoesOnOverAnotherProcesssGrant(t *testing.T) {
	const slice = 10 * time.Millisecond
	for name, c := range map[string]struct {
		away time.Duration // from a release to the next request
		over bool
	}{"asks at once": {time.Millisecond, true}, "is woken": {2 * soon, false}} {
		t.Run(name, func(t *testing.T) {
			b, now := budget{Grants: 16, For: time.Second}, time.Now()
			over := false
			for token := int64(1); token < 21; token += 2 {
				b.Granted("k", token, now, 0)
				b.Looked("k", true, now)
				if over = b.Of("k").Over(now, slice-time.Millisecond); over {
					break
				}
				b.Released("k", now, slice, true)
				now = now.Add(c.away)
			}
			if over != c.over {
				t.Errorf("over is %t", over)
			}
		})
	}
}

func TestATimeSliceIsOverForOthersThatWait(t *testing.T) {
	b, now := budget{Grants: 16, For: time.Second}, time.Now()
	b.Granted("k", 1, now, 0)
	late := now.Add(time.Hour)
	if b.Of("k").Over(late, 0) {
		t.Error("over, and nothing has looked for others")
	}
	b.Looked("k", true, now)
	if b.Of("k").Over(now.Add(time.Second-1), time.Second) || !b.Of("k").Over(now.Add(time.Second), time.Second) {
		t.Error("over at another time")
	}
	if b.Looked("k", false, now); b.Of("k").Over(late, 0) {
		t.Error("over, and no other waits")
	}
}
