package locktest

import (
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var placeProperties = []property{
	{"a place says who is ahead, who holds and for how long", placeTells},
	{"a place whose key was passed to it says so, with the token and what remains", placeGranted},
	{"a place without a live ticket is missing", placeMissing},
	{"places are answered in the order of the request, whatever the keys", placesInOrder},
	{"places write nothing", placesWriteNothing},
}

func placeTells(r *rig) {
	q := request("k", lease.NewOwner())
	q.Note = "holder of é'\"\\%"
	r.queue()
	l := r.wantClaimed(q)
	line := []lease.Ticket{r.join("k"), r.join("k"), r.join("k")}
	for i, p := range r.places(line...) {
		other := p.Token != 0 && p.Token != l.Token
		if p.Granted || p.Missing || other || p.Ahead != i || p.Note != q.Note {
			r.Errorf("place %d of a queue behind %q is %+v", i, q.Note, p)
		}
		if p.Remaining <= ttl/2 || p.Remaining > ttl {
			r.Errorf("place %d was told that %v remain of %v", i, p.Remaining, ttl)
		}
	}
	r.leave(line[0])
	r.expireTicket(line[1])
	r.wantRelease(l, false)
	if p := r.places(line[2])[0]; p.Ahead != 0 || p.Missing || p.Remaining > 0 || p.Note != "" {
		r.Errorf("alone at a free key, the place is %+v", p)
	}
	r.takeAfter(l)
	r.expire("k")
	if p := r.places(line[2])[0]; p.Granted || p.Remaining > 0 {
		r.Errorf("at an expired key, the place is %+v", p)
	}
	if p := r.places(r.join("new"))[0]; p.Granted || p.Missing || p.Remaining > 0 || p.Ahead != 0 {
		r.Errorf("at a key without row, the place is %+v", p)
	}
}

func placeGranted(r *rig) {
	r.queue()
	l := r.take("k")
	first, second := ticket("k"), ticket("k")
	first.TTL, first.Note = 2*ttl, "first"
	r.joinAll(first, second)
	start := time.Now()
	next := r.wantPassed(l, first)
	places := r.places(first, second)
	if p := places[0]; !p.Granted || p.Missing || p.Token != next.Token {
		r.Errorf("passed with token %d, and the place is %+v", next.Token, p)
	}
	if rest := places[0].Remaining; rest > first.TTL || rest < first.TTL-time.Since(start)-tolerance {
		r.Errorf("passed for %v, and %v remain", first.TTL, rest)
	}
	if p := places[1]; p.Granted || p.Missing || p.Ahead != 0 || p.Note != "first" {
		r.Errorf("next in line, the place is %+v", p)
	}
	r.expire("k")
	if p := r.places(first)[0]; p.Granted || !p.Missing {
		r.Errorf("passed and expired, the place is %+v", p)
	}
}

func placeMissing(r *rig) {
	r.queue()
	r.take("k")
	never, left, dead := ticket("k"), r.join("k"), r.join("k")
	r.leave(left)
	r.expireTicket(dead)
	for i, p := range r.places(never, left, dead) {
		if !p.Missing || p.Granted {
			r.Errorf("place %d of those without a live ticket is %+v", i, p)
		}
	}
	r.joinAll(dead)
	if p := r.places(dead)[0]; p.Missing {
		r.Error("a waiter that has joined again is missing")
	}
}

func placesInOrder(r *rig) {
	r.queue()
	var line []lease.Ticket
	for i, key := range scattered {
		for range i % 3 {
			r.join(key)
		}
		t := ticket(key)
		t.Note = fmt.Sprint("after ", i%3)
		line = append(line, t)
	}
	r.joinAll(line...)
	line = append(line, line[0])
	for i, p := range r.places(line...) {
		if want := i % len(scattered) % 3; p.Missing || p.Ahead != want {
			r.Errorf("at %q the place is %+v, want %d ahead", line[i].Key, p, want)
		}
	}
	r.leave(line...)
	for i, p := range r.places(line...) {
		if !p.Missing {
			r.Errorf("after leaving %q the place is %+v", line[i].Key, p)
		}
	}
}

func placesWriteNothing(r *rig) {
	r.queue()
	l := r.take("k")
	before, _ := r.row("k")
	dead, alive, unknown := r.join("k"), r.join("k"), ticket("unknown")
	r.expireTicket(dead)
	for range 3 {
		r.places(dead, alive, unknown)
	}
	after, _ := r.row("k")
	if after.Lease != before.Lease || after.Remaining > before.Remaining {
		r.Errorf("after looking the row is %+v, before it was %+v", after, before)
	}
	if row, ok := r.row("unknown"); ok {
		r.Errorf("looking has made %+v", row)
	}
	if p := r.places(dead)[0]; !p.Missing {
		r.Errorf("looking has revived a ticket: %+v", p)
	}
	r.wantServed(l, alive)
}
