package locktest

import (
	"context"
	"errors"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.AllAcquirer.
var togetherProperties = []property{
	{"keys that are absent, free and expired are granted together", allGranted},
	{"all are answered in the order of the requests", allInOrder},
	{"where one key is held none is granted", allRefused},
	{"a loser of all leaves owners, tokens and expiries as they are, and makes no row", allUntouched},
	{"a loser of all hears of every holder", allHolders},
	{"all asked for again are the same leases, not extended", allAgain},
	{"of keys that were acquired together each can be released by itself", allReleased},
	{"all of which one has exhausted its tokens are refused", allExhausted},
	{"a key that comes twice among all is refused", allTwice},
	{"a request for nobody or for a bad key refuses all", allMisused},
	{"all of nothing is nothing", allEmpty},
	{"500 keys are granted together", allMany},
	{"owners of overlapping sets have all of theirs or none, and nobody deadlocks", allRace},
	{"whoever changes keys alone does not make all a part", allBeside},
}

// canAll reports whether the store can do it, with the database under it.
func canAll(s lease.Store) bool {
	a, ok := adapter.As[lease.AllAcquirer](s)
	if !ok {
		return false
	}
	probe := request("all", lease.NewOwner())
	answers, err := a.AcquireAll(context.Background(), []lease.AcquireRequest{probe})
	if err == nil && answers[0].Granted {
		_, err = releaseOne(context.Background(), s, lease.Lease{Key: probe.Key, Owner: probe.Owner, Token: answers[0].Token})
	}
	return !errors.Is(err, lease.ErrUnsupported)
}

func (r *rig) allAcquirer(s lease.Store) lease.AllAcquirer { return able[lease.AllAcquirer](r, s) }

const noAll = "the store does not acquire several keys at once"

// passes reports whether the database could not do it for the moment, and nothing was changed.
func passes(err error) bool {
	return errors.Is(err, lease.ErrBusy) && !errors.Is(err, lease.ErrUnknown)
}

// patient calls f again while the database cannot do it for the moment. Writers of SQLite poll,
// and one of them can find another at each of its polls for as long as busy_timeout lasts.
func (r *rig) patient(f func() error) (err error) {
	for err = f(); passes(err) && r.ctx.Err() == nil; err = f() {
	}
	return err
}

// requests are for a new owner each.
func requests(keys ...string) []lease.AcquireRequest {
	reqs := make([]lease.AcquireRequest, len(keys))
	for i, key := range keys {
		reqs[i] = request(key, lease.NewOwner())
	}
	return reqs
}

// all asks for all keys at once. granted says whether they were; a grant of only some fails the
// test.
func (r *rig) all(reqs []lease.AcquireRequest) (answers []lease.Acquired, granted bool) {
	r.Helper()
	answers, err := r.allAcquirer(r.here).AcquireAll(r.ctx, reqs)
	if err != nil {
		r.Fatalf("acquire all: %v", err)
	}
	granted, why := whole(reqs, answers)
	if why != "" {
		r.Fatal(why)
	}
	return answers, granted
}

// whole reports whether all were granted, and what is wrong with the answers.
func whole(reqs []lease.AcquireRequest, answers []lease.Acquired) (granted bool, wrong string) {
	n, inTheWay := 0, 0
	for _, a := range answers {
		switch {
		case a.Err != nil:
			return false, "acquire all: an answer with an error of its own: " + a.Err.Error()
		case a.Granted:
			n++
		case !a.Possible:
			inTheWay++
		}
	}
	switch {
	case len(answers) != len(reqs), n > 0 && n < len(reqs):
		return false, "acquire all: a part was granted, or answered"
	case n == 0 && inTheWay == 0 && len(reqs) > 0:
		return false, "acquire all: refused, and nothing is in the way"
	}
	return n == len(reqs), ""
}

// takeTogether locks keys that must be free.
func (r *rig) takeTogether(keys ...string) []lease.Lease {
	r.Helper()
	reqs := requests(keys...)
	answers, granted := r.all(reqs)
	if !granted {
		r.Fatalf("acquire all of %q: refused, though all are free: %+v", keys, answers)
	}
	leases := make([]lease.Lease, len(keys))
	for i, a := range answers {
		leases[i] = lease.Lease{Key: keys[i], Owner: reqs[i].Owner, Token: a.Token}
	}
	return leases
}

// wantNotAll asks for keys of which one is held, and returns the answers.
func (r *rig) wantNotAll(keys ...string) []lease.Acquired {
	r.Helper()
	answers, granted := r.all(requests(keys...))
	if granted {
		r.Fatalf("acquire all of %q: granted, though one is held", keys)
	}
	return answers
}

func allGranted(r *rig) {
	free, expired := r.take("free"), r.take("expired")
	r.wantRelease(free, false)
	r.expire("expired")
	for _, l := range r.takeTogether("absent", "free", "expired", "also absent") {
		switch {
		case l.Token <= 0:
			r.Errorf("%q was granted with token %d", l.Key, l.Token)
		case l.Key == "free":
			r.wantAbove(l, free)
		case l.Key == "expired":
			r.wantAbove(l, expired)
		}
		r.wantHeld(l)
	}
	r.wantRenew(expired, lease.Lost)
}

func allInOrder(r *rig) {
	for i, key := range scattered { // so that no two have the same token
		for range i + 1 {
			r.wantRelease(r.take(key), false)
		}
	}
	for _, l := range r.takeTogether(scattered...) {
		if row, _ := r.row(l.Key); row.Lease != l {
			r.Errorf("%q was answered %+v, and its row is %+v", l.Key, l, row.Lease)
		}
	}
}

func allRefused(r *rig) {
	held := r.take("b")
	for _, keys := range [][]string{{"a", "b", "c"}, {"b", "z"}, {"a", "b"}, {"b"}} {
		r.wantNotAll(keys...)
		for _, key := range keys {
			if row, _ := r.row(key); row.Held && row.Lease != held {
				r.Errorf("of %q, %q is held: %+v", keys, key, row)
			}
		}
	}
	r.wantHeld(held)
	r.wantRelease(held, false)
	r.takeTogether("a", "b", "c")
}

func allUntouched(r *rig) {
	free := r.take("free")
	r.wantRelease(free, false)
	r.take("expired")
	r.expire("expired")
	r.take("held")
	keys := []string{"free", "expired", "held"}
	before := r.list(lease.Filter{})
	for range 3 {
		r.wantNotAll(append(keys, "absent")...)
	}
	after := r.list(lease.Filter{})
	if len(before) != len(after) {
		r.Fatalf("the rows were %+v and are %+v", before, after)
	}
	for i := range after {
		b, a := before[i], after[i]
		if a.Lease != b.Lease || a.Held != b.Held || a.Note != b.Note || a.Remaining > b.Remaining || a.Age < b.Age {
			r.Errorf("the row was %+v and is %+v", b, a)
		}
	}
	r.wantAbove(r.take("free"), free)
}

func allHolders(r *rig) {
	long := longestNote()[len("ö"):]
	for _, key := range []string{"b", "d"} {
		q := request(key, lease.NewOwner())
		q.Note = long + key
		if a := r.acquireAll([]lease.AcquireRequest{q})[0]; !a.Granted {
			r.Fatalf("%q: refused", key)
		}
	}
	keys := []string{"d", "a", "b", "c"}
	for i, a := range r.wantNotAll(keys...) {
		held := keys[i] == "b" || keys[i] == "d"
		if a.Possible == held || held && (a.Holder.Note != long+keys[i] || a.Holder.Remaining <= ttl/2 || a.Holder.Remaining > ttl) {
			r.Errorf("for %q the answer is %+v", keys[i], a)
		}
	}
}

func allAgain(r *rig) {
	reqs := requests("c", "a", "b")
	first, granted := r.all(reqs)
	before := r.list(lease.Filter{})
	for range 2 {
		again, ok := r.all(reqs)
		for i := range reqs {
			if !granted || !ok || again[i].Token != first[i].Token {
				r.Fatalf("the same request was answered %+v and then %+v", first, again)
			}
		}
	}
	// To confirm a repeat the store may write, which extends the lease by the clock's resolution.
	for i, row := range r.list(lease.Filter{}) {
		if row.Lease != before[i].Lease || row.Remaining > before[i].Remaining+tolerance {
			r.Errorf("the row was %+v, and after the same request is %+v", before[i], row)
		}
	}
}

func allReleased(r *rig) {
	leases := r.takeTogether("a", "b", "c")
	r.wantRelease(leases[1], false)
	r.wantHeld(leases[0])
	r.wantHeld(leases[2])
	r.wantNotAll("a", "b")
	next := r.takeAfter(leases[1])
	r.wantRelease(leases[1], true)
	r.wantHeld(next)
}

func allExhausted(r *rig) {
	if r.h.SetToken == nil {
		r.Skip("Harness.SetToken is nil")
	}
	a := r.allAcquirer(r.here)
	r.wantRelease(r.take("b"), false)
	r.h.SetToken(r.TB, r.here, "b", lease.MaxToken-1)
	if answers, err := a.AcquireAll(r.ctx, requests("a", "b", "c")); !errors.Is(err, lease.ErrTokenExhausted) {
		r.Errorf("answered %+v, error %v; want lease.ErrTokenExhausted", answers, err)
	}
	for _, row := range r.list(lease.Filter{}) {
		if row.Held {
			r.Errorf("of keys that were refused, %+v is held", row)
		}
	}
	r.wantHeld(r.take("a"))
}

func allTwice(r *rig) {
	a := r.allAcquirer(r.here)
	same := request("a", lease.NewOwner())
	for _, reqs := range [][]lease.AcquireRequest{requests("a", "b", "a"), {same, same}} {
		if answers, err := a.AcquireAll(r.ctx, reqs); !errors.Is(err, lease.ErrConfig) {
			r.Errorf("answered %+v, error %v; want lease.ErrConfig", answers, err)
		}
	}
	r.wantNoRows()
}

func allMisused(r *rig) {
	a := r.allAcquirer(r.here)
	for _, bad := range []lease.AcquireRequest{request("b", lease.Owner{}), request("", lease.NewOwner())} {
		if answers, err := a.AcquireAll(r.ctx, append(requests("a"), bad)); err == nil {
			r.Errorf("%+v was answered %+v", bad, answers)
		}
	}
	r.wantNoRows()
}

func (r *rig) wantNoRows() {
	r.Helper()
	if rows := r.list(lease.Filter{}); len(rows) > 0 {
		r.Errorf("what was refused has made %+v", rows)
	}
}

func allEmpty(r *rig) {
	if answers, err := r.allAcquirer(r.here).AcquireAll(r.ctx, nil); len(answers) > 0 || err != nil {
		r.Errorf("answered %+v, error %v", answers, err)
	}
}

func allMany(r *rig) {
	keys := make([]string, r.h.most(500))
	for i := range keys {
		keys[i] = string(rune('a'+i%26)) + string(rune('0'+i/26))
	}
	leases := r.takeTogether(keys...)
	for i, got := range r.renewAll(leases...) {
		if got != lease.Extended {
			r.Fatalf("lease %d of %d acquired together: %v", i, len(keys), got)
		}
	}
	slices.Reverse(keys)
	r.wantNotAll(keys...)
}
