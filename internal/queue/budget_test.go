package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// budget is the records of keys, as one process grants and releases them.
type budget struct{ keys }

func (b *budget) of(key string) *usage {
	u := b.keys.of(key)
	return &u
}

func (b *budget) spent(key string, now time.Time) bool {
	k := b.find(key)
	return k != nil && k.spent(&b.policy, now)
}

func (b *budget) looked(key string, awaited bool, at time.Time) {
	if k := b.find(key); k != nil {
		k.looked, k.awaited = at, awaited
	}
}

func (b *budget) ends(key string, now time.Time, slice time.Duration, awaited bool) (returns bool) {
	return b.find(key).ends(&policy{slice: slice}, now, awaited)
}

func (b *budget) asks(key string, now time.Time, room time.Duration) (yielded bool) {
	return b.find(key).asks(&policy{slice: room}, now)
}

func newBudget(grants int, lasts time.Duration) *budget {
	return &budget{keys{policy: policy{grants: grants, lasts: lasts}}}
}

func TestABudgetIsSpentAfterSoManyGrantsAndSoLong(t *testing.T) {
	r := newBudget(3, time.Second)
	now := time.Now()
	for token := range lease.Token(3) {
		if r.spent("k", now.Add(time.Hour)) {
			t.Errorf("over after %d grants", token)
		}
		r.Granted("k", token+1, now, 0)
	}
	if r.spent("k", now.Add(time.Second-1)) {
		t.Error("over too soon")
	}
	if !r.spent("k", now.Add(time.Second)) {
		t.Error("not over")
	}
	if r.spent("k", now.Add(time.Hour)) {
		t.Error("over twice")
	}
}

// A token that is not the next one is another process's grant between ours.
func TestAnotherProcesssGrantEndsAStreak(t *testing.T) {
	r := newBudget(3, time.Second)
	now := time.Now()
	for _, token := range []lease.Token{1, 2, 4, 5} {
		r.Granted("k", token, now, 0)
	}
	if r.spent("k", now.Add(time.Hour)) {
		t.Error("counted over another's grant")
	}
	r.Granted("k", 6, now, 0)
	if !r.spent("k", now.Add(time.Hour)) {
		t.Error("not over")
	}
}

// Keys that are used once are forgotten; one that is used again and again is not.
func TestABudgetForgetsKeysUsedOnce(t *testing.T) {
	r := newBudget(100, 0)
	now := time.Now()
	for i := range 100_000 {
		r.Granted(fmt.Sprint("once", i), 1, now, 0)
		if i%1000 == 0 {
			r.Granted("hot", lease.Token(1+i/1000), now, 0)
		}
	}
	if !r.spent("hot", now) {
		t.Error("a key in use was forgotten")
	}
	if r.spent("once0", now) {
		t.Error("a key used once is remembered")
	}
}

// A process that asks again at once keeps the key for a turn; then it leaves it to others, once.
func TestATurnEndsAfterItsTime(t *testing.T) {
	const slice, room = 5 * time.Millisecond, 10 * time.Millisecond
	r := newBudget(0, 0)
	now := time.Now()
	pair := func(token lease.Token) (returns bool) {
		r.Granted("k", token, now, 0)
		now = now.Add(2 * time.Millisecond)
		return r.ends("k", now, slice, true)
	}
	for token, want := range []struct{ returns, yields bool }{{}, {returns: true}, {yields: true}} {
		if returns := pair(lease.Token(token + 1)); returns != want.returns {
			t.Errorf("release %d: returns %t", token, returns)
		}
		if yields := r.asks("k", now, room); yields != want.yields {
			t.Errorf("release %d: yields %t", token, yields)
		}
	}
	if r.asks("k", now.Add(room), room) {
		t.Error("yields after the others had their time")
	}
	pair(10)
	if r.asks("k", now, room) {
		t.Error("another's grant did not begin a new turn")
	}
}

// A process that was away is not waited for the next time.
func TestAProcessThatWasAwayIsNotExpectedToReturn(t *testing.T) {
	r := newBudget(0, 0)
	now := time.Now()
	for i, away := range []time.Duration{0, 2 * soon, 0} {
		r.Granted("k", lease.Token(i+1), now, 0)
		returns := r.ends("k", now, time.Hour, true)
		if want := i == 1; returns != want {
			t.Errorf("release %d: returns %t", i, returns)
		}
		now = now.Add(away)
		r.asks("k", now, 0)
	}
}

// Only the last look counts, and only for a while.
func TestABudgetKnowsForAWhileThatNoOtherProcessWaits(t *testing.T) {
	b := newBudget(2, time.Second)
	now := time.Now()
	if b.looked("never", false, now); b.of("never").quiet(now, time.Second) {
		t.Error("a key without a grant is remembered")
	}
	b.Granted("k", 1, now, 0)
	if b.of("k").quiet(now, time.Second) {
		t.Error("quiet without a look")
	}
	b.looked("k", false, now)
	b.Granted("k", 3, now, 0) // another process had it in between
	for age, want := range map[time.Duration]bool{0: true, time.Second - 1: true, time.Second: false} {
		if b.of("k").quiet(now.Add(age), time.Second) != want {
			t.Errorf("quiet %s after the look: %t", age, !want)
		}
	}
	if b.looked("k", true, now); b.of("k").quiet(now, time.Second) {
		t.Error("quiet after a look that has found a process")
	}
}

// Readers' releases are while others hold the key, for however long, and what waits for a slot may
// not poll.
func TestALookIsBelievedOnlyOfAKeyThatWasFree(t *testing.T) {
	for name, c := range map[string]struct {
		shared, next bool // the release that has looked, and the one after it
		slot, quiet  bool
	}{
		"exclusive locks":    {quiet: true},
		"a reader's look":    {shared: true},
		"a reader's release": {next: true},
		"a slot":             {slot: true},
	} {
		q := &Attempts{base: base{cfg: Config{PollMin: time.Second, PollMax: time.Hour}}}
		now := time.Now()
		q.keys.Granted("k", 1, now, 0)
		looked := Release{Lease: lease.Lease{Key: "k", Shared: c.shared}}
		looked.state.got.Looked = true
		q.keys.released(&looked, now, new(notifications))
		next := Release{Lease: lease.Lease{Key: "k", Shared: c.next}, Slot: c.slot}
		if got := q.quiet(&next, now); got != c.quiet {
			t.Errorf("%s: quiet is %t", name, got)
		}
	}
}

// A hold that is younger than the moment for which a look is believed is polled as often as any,
// however many processes share the polls: a waiter that is not woken then misses little.
func TestAHoldOfAMomentIsPolledEveryMin(t *testing.T) {
	p := newPoller(polling{Min: time.Second, Max: time.Hour})
	for age := time.Duration(0); age <= 4*time.Second; age += time.Second / 4 {
		if every := p.paces(new(pollState), &observed{Age: age, Waiters: 20}); every != p.Min {
			t.Errorf("a hold of %s is polled every %s", age, every)
		}
	}
}

// Streaks are used again for other keys: none may be two keys' at once.
func TestEachKeyHasAStreakOfItsOwn(t *testing.T) {
	b := newBudget(1<<30, time.Hour)
	now, tokens := time.Now(), make(map[string]lease.Token)
	for range 20_000 { // keys come again after a few, after two generations, or never
		key := fmt.Sprint(int(math.Exp2(rand.Float64() * 13)))
		if token := b.of(key).token; token != 0 && token != tokens[key] {
			t.Fatalf("%s: token %d, and it was granted %d", key, token, tokens[key])
		}
		tokens[key]++
		b.Granted(key, tokens[key], now, 0)
	}
	for key, want := range tokens {
		if token := b.of(key).token; token != 0 && token != want {
			t.Errorf("%s: token %d, and it was granted %d", key, token, want)
		}
	}
}

func TestManyKeysAllocateNothing(t *testing.T) {
	b, now := newBudget(2, time.Second), time.Now()
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	use := func() {
		for _, key := range keys {
			b.Granted(key, 1, now, 0)
			b.looked(key, false, now)
			b.ends(key, now, time.Second, false)
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
			b, now := newBudget(16, time.Second), time.Now()
			over := false
			for token := lease.Token(1); token < 21; token += 2 {
				b.Granted("k", token, now, 0)
				b.looked("k", true, now)
				if over = b.of("k").over(now, slice-time.Millisecond); over {
					break
				}
				b.ends("k", now, slice, true)
				now = now.Add(c.away)
			}
			if over != c.over {
				t.Errorf("over is %t", over)
			}
		})
	}
}

func TestATimeSliceIsOverForOthersThatWait(t *testing.T) {
	b, now := newBudget(16, time.Second), time.Now()
	b.Granted("k", 1, now, 0)
	late := now.Add(time.Hour)
	if b.of("k").over(late, 0) {
		t.Error("over, and nothing has looked for others")
	}
	b.looked("k", true, now)
	if b.of("k").over(now.Add(time.Second-1), time.Second) || !b.of("k").over(now.Add(time.Second), time.Second) {
		t.Error("over at another time")
	}
	if b.looked("k", false, now); b.of("k").over(late, 0) {
		t.Error("over, and no other waits")
	}
}

// What a key's waiters wait for is forgotten as little as they are, however many other keys are
// used, and waiting keys do not have each new one look through all of them.
func TestAKeyWithWaitersIsNotForgotten(t *testing.T) {
	b, now := newBudget(16, time.Second), time.Now()
	for i := range 3 * generation {
		b.join(&waiter{call: &Call{Keys: []string{fmt.Sprint("waits", i)}}}, now, true)
	}
	for i := range 20 * generation {
		b.Granted(fmt.Sprint("once", i), 1, now, 0)
	}
	for i := range 3 * generation {
		if n := b.len(fmt.Sprint("waits", i)); n != 1 {
			t.Fatalf("%d calls wait for key %d", n, i)
		}
	}
	if n := len(b.cur) + len(b.prev); n > 6*generation {
		t.Errorf("%d keys are remembered", n)
	}
}
