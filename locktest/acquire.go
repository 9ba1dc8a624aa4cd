package locktest

import (
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var acquireProperties = []property{
	{"a key has one owner at a time", oneOwner},
	{"a loser is told who holds the key, for how long, and gets no error", loserIsTold},
	{"a note of 384 bytes comes back as it was", wholeNote},
	{"a losing attempt changes nothing", loserChangesNothing},
	{"a repeated acquire returns the same lease", repeatIsSame},
	{"two owners of one process exclude each other", alikeOwners},
	{"an expired lease is taken over with a higher token", takeover},
	{"an owner whose lease has expired gets a new one with a higher token", sameOwnerAfterExpiry},
	{"the zero owner is granted nothing", zeroOwner},
}

func oneOwner(r *rig) {
	l := r.take("k")
	r.wantHeld(l)
	r.take("another")
	r.wantHeld(l)
}

func loserIsTold(r *rig) {
	for _, note := range []string{"worker 7 of é'\"\\%", ""} {
		q := request("k", lease.NewOwner())
		q.Note = note
		holder, err := acquireOne(r.ctx, r.here, q)
		if err != nil || !holder.Granted {
			r.Fatalf("acquire with note %q: %+v, %v", note, holder, err)
		}
		got := r.try(r.there(), "k", lease.NewOwner())
		if got.Granted {
			r.Fatal("the loser was granted the key")
		}
		if got.Holder.Note != note {
			r.Errorf("the refused caller got note %q, want %q", got.Holder.Note, note)
		}
		if rest := got.Holder.Remaining; rest <= 0 || rest > ttl {
			r.Errorf("the refused caller got %v remain of a lease of %v", rest, ttl)
		}
		r.wantRelease(lease.Lease{Key: "k", Owner: q.Owner, Token: holder.Token}, false)
	}
}

// longestNote is the longest text that a client writes: an identity, a tab and a note.
func longestNote() string {
	text := func(n int) string { return strings.Repeat("ö€🔒", n/9) + strings.Repeat("x", n%9) }
	return lease.StoredNote(text(lease.MaxIdentity), text(lease.MaxNote))
}

func wholeNote(r *rig) {
	q := request("k", lease.NewOwner())
	q.Note = longestNote()
	if a, err := acquireOne(r.ctx, r.here, q); err != nil || !a.Granted {
		r.Fatalf("acquire with a note of %d bytes: %+v, %v", len(q.Note), a, err)
	}
	if got := r.try(r.there(), "k", lease.NewOwner()); got.Holder.Note != q.Note {
		r.Errorf("the refused caller got %q, want %q", got.Holder.Note, q.Note)
	}
	if row, _ := r.row("k"); row.Note != q.Note {
		r.Errorf("inspect shows %q, want %q", row.Note, q.Note)
	}
}

func loserChangesNothing(r *rig) {
	l := r.take("k")
	before, _ := r.row("k")
	for range 3 {
		q := request("k", lease.NewOwner())
		q.Note, q.TTL = "loser", 2*ttl
		if _, err := acquireOne(r.ctx, r.there(), q); err != nil {
			r.Fatal(err)
		}
	}
	after, _ := r.row("k")
	if after.Lease != l || after.Note != before.Note || !after.Held {
		r.Errorf("after a losing attempt the row is %+v, before it was %+v", after, before)
	}
	if after.Remaining > before.Remaining+tolerance || after.Age < before.Age-tolerance {
		r.Errorf("a losing attempt moved the lease's times: %+v, before %+v", after, before)
	}
}

// repeatIsSame is a lost reply: the retry must find that the key is its own (ZOOKEEPER-1262).
func repeatIsSame(r *rig) {
	l := r.take("k")
	for _, s := range []lease.Store{r.here, r.there(), r.here} {
		again := r.try(s, "k", l.Owner)
		if !again.Granted || again.Token != l.Token {
			r.Fatalf("the same owner asks again: %+v, want granted with token %d", again, l.Token)
		}
		if a := r.try(s, "k", lease.NewOwner()); a.Granted {
			r.Fatalf("another owner was granted the key with token %d", a.Token)
		}
	}
	r.wantHeld(l)
}

// alikeOwners differ in one byte, the first or the last, because an owner is all of its 16 bytes.
func alikeOwners(r *rig) {
	for _, at := range []int{0, len(lease.Owner{}) - 1} {
		key := string(rune('a' + at))
		l := r.take(key)
		alike := l.Owner
		alike[at] ^= 1
		if a := r.try(r.here, key, alike); a.Granted {
			r.Errorf("owner %v was granted the key that %v holds", alike, l.Owner)
		}
		r.wantRenew(lease.Lease{Key: key, Owner: alike, Token: l.Token}, lease.Lost)
		r.wantRelease(lease.Lease{Key: key, Owner: alike, Token: l.Token}, true)
		r.wantHeld(l)
	}
}

func takeover(r *rig) {
	l := r.take("k")
	for range 3 {
		r.expire("k")
		l = r.takeAfter(l)
		r.wantHeld(l)
	}
}

func sameOwnerAfterExpiry(r *rig) {
	old := r.take("k")
	r.expire("k")
	next := r.takeAs("k", old.Owner)
	r.wantAbove(next, old)
	r.wantRenew(old, lease.Lost)
	r.wantHeld(next)
}

// zeroOwner stands for a free row: a grant to it would leave the key looking free.
func zeroOwner(r *rig) {
	a, err := acquireOne(r.ctx, r.here, request("k", lease.Owner{}))
	if err == nil && a.Granted {
		r.Errorf("the zero owner was granted the key with token %d", a.Token)
	}
	l := r.take("k")
	r.wantRelease(l, false)
	free := lease.Lease{Key: "k", Token: l.Token}
	r.wantRenew(free, lease.Lost)
	r.wantRelease(free, true)
	r.wantRelease(lease.Lease{Key: "k"}, true)
}

// tolerance allows for rounding and for a clock that is being disciplined.
const tolerance = 50 * time.Millisecond
