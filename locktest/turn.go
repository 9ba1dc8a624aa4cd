package locktest

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// turnProperties are about tickets that wait for a key on behalf of tenants.
var turnProperties = []property{
	{"tenants take turns, and each tenant's tickets keep their order", tenantsTakeTurns},
	{"the tickets of a single tenant are served as those of none", oneTenant},
	{"a tenant that comes again takes no other's turn", comingAgain},
	{"a tenant's tickets that join in one batch take a turn each", batchInTurn},
	{"tickets without a tenant are passed in turn and never go forward", withoutTenant},
	{"a priority puts no tenant before another", priorityOfTenants},
	{"a heartbeat keeps a tenant's turn", heartbeatInTurn},
	{"places count the tickets ahead as turns have them", placesInTurn},
	{"whatever tenants do, they are served in turn", randomTurns},
	{"a ticket of a tenant whose name is too long is refused", longTenant},
}

// ticketOf is a new waiter's, on behalf of a tenant.
func ticketOf(tenant string) lease.Ticket {
	t := ticket("k")
	t.Tenant = tenant
	return t
}

// joinOf gives a new waiter of each of the tenants a ticket, one after the other.
func (r *rig) joinOf(tenants ...string) []lease.Ticket {
	r.Helper()
	tickets := make([]lease.Ticket, len(tenants))
	for i, tenant := range tenants {
		tickets[i] = ticketOf(tenant)
		r.joinAll(tickets[i])
	}
	return tickets
}

// pick returns the tickets with these numbers.
func pick(tickets []lease.Ticket, numbers ...int) []lease.Ticket {
	picked := make([]lease.Ticket, len(numbers))
	for i, n := range numbers {
		picked[i] = tickets[n]
	}
	return picked
}

func tenantsTakeTurns(r *rig) {
	l := r.take("k")
	t := r.joinOf("a", "a", "a", "a", "b", "b", "c")
	r.wantServed(l, pick(t, 0, 4, 6, 1, 5, 2, 3)...)
}

func oneTenant(r *rig) {
	l := r.take("k")
	line := make([]lease.Ticket, 5)
	for i, priority := range []int{1, 5, 10, 5, 1} {
		line[i] = ticketOf("a")
		line[i].Priority = priority
		r.joinAll(line[i])
	}
	r.wantServed(l, pick(line, 2, 1, 3, 0, 4)...)
}

// comingAgain has two tenants that join again as soon as they are served, beside one that waits.
func comingAgain(r *rig) {
	l := r.take("k")
	line := r.joinOf("a", "a", "a", "a", "b", "c")
	names := make(map[lease.Owner]string)
	for _, t := range line {
		names[t.Owner] = t.Tenant
	}
	var served strings.Builder
	for range 12 {
		p := r.pass(l)
		name := names[p.To]
		served.WriteString(name)
		l = lease.Lease{Key: "k", Owner: p.To, Token: p.Token}
		if name == "b" || name == "c" {
			t := r.joinOf(name)[0]
			names[t.Owner] = name
		}
	}
	if got, want := served.String(), strings.Repeat("abc", 4); got != want {
		r.Errorf("tenants were served as %s, want %s", got, want)
	}
}

func batchInTurn(r *rig) {
	l := r.take("k")
	b := r.joinOf("b", "b", "b")
	batch := []lease.Ticket{ticketOf("a"), ticketOf("a"), ticketOf("a"), ticketOf("a")}
	r.joinAll(slices.Concat(batch, b[:1])...)
	r.wantServed(l, b[0], batch[0], b[1], batch[1], b[2], batch[2], batch[3])
}

func withoutTenant(r *rig) {
	l := r.take("k")
	t := r.joinOf("", "", "", "a", "a", "")
	r.wantServed(l, pick(t, 0, 3, 1, 4, 2, 5)...)
	l = r.take("k")
	t = r.joinOf("a", "a", "a", "", "b")
	r.wantServed(l, pick(t, 0, 4, 1, 2, 3)...)
}

func priorityOfTenants(r *rig) {
	l := r.take("k")
	b := r.joinOf("b", "b")
	a := []lease.Ticket{ticketOf("a"), ticketOf("a"), ticketOf("a"), ticketOf("a")}
	for i := range a {
		a[i].Priority = 10
		r.joinAll(a[i])
	}
	late := r.joinOf("b")[0]
	r.wantServed(l, b[0], a[0], b[1], a[1], a[2], late, a[3])
}

func heartbeatInTurn(r *rig) {
	l := r.take("k")
	t := r.joinOf("a", "a", "a", "b", "b")
	for range 2 {
		r.joinAll(t[4], t[3], t[1])
		r.joinAll(t[3])
	}
	r.wantServed(l, pick(t, 0, 3, 1, 4, 2)...)
}

func placesInTurn(r *rig) {
	l := r.take("k")
	t := r.joinOf("a", "a", "a", "b", "b")
	for i, p := range r.places(t...) {
		if want := []int{0, 2, 4, 1, 3}[i]; p.Ahead != want || p.Missing {
			r.Errorf("ticket %d stands at %+v, want %d ahead", i, p, want)
		}
	}
	r.wantServed(l, pick(t, 0, 3, 1, 4, 2)...)
}

func longTenant(r *rig) {
	q := r.queue()
	l := r.take("k")
	t := ticketOf(strings.Repeat("t", lease.MaxKey+1))
	if err := q.Join(r.ctx, []lease.Ticket{t}); err == nil {
		r.Errorf("joined a ticket of a tenant of %d bytes", len(t.Tenant))
	}
	t = ticketOf(strings.Repeat("\x00", lease.MaxKey))
	r.joinAll(t)
	r.wantServed(l, t)
}

// stand is a ticket in the model of a queue. A round is a ticket and those right behind it.
type stand struct {
	lease.Ticket
	round int
	first bool // of its round
}

// joined puts a ticket into the model of a queue.
func joined(line []stand, t lease.Ticket, round int) []stand {
	own, others := -1, false
	for i, s := range line {
		others = others || s.Tenant != t.Tenant
		if s.Tenant == t.Tenant {
			own = i
		}
	}
	end := append(line, stand{t, round, true})
	if t.Tenant == "" || !others {
		return end
	}
	after := func(s stand) bool { return own < 0 && line[0].first || s.round != line[max(own, 0)].round }
	at := slices.IndexFunc(line[max(own, 0):], after)
	if at < 0 {
		return end
	}
	at += max(own, 0)
	for round = line[at].round; at < len(line) && line[at].round == round; {
		at++
	}
	return slices.Insert(line, at, stand{t, round, false})
}

func randomTurns(r *rig) {
	r.queue()
	l := r.take("k")
	var line []stand
	for i := range r.h.scale(120) {
		switch n := rand.IntN(8); {
		case n < 4:
			t := r.joinOf([]string{"", "a", "b", "c", "d"}[rand.IntN(5)])[0]
			line = joined(line, t, i)
		case n == 4 && len(line) > 0:
			at := rand.IntN(len(line))
			r.leave(line[at].Ticket)
			line = slices.Delete(line, at, at+1)
		case len(line) > 0:
			l = r.wantPassed(l, line[0].Ticket)
			line = line[1:]
		}
	}
	for _, s := range line {
		l = r.wantPassed(l, s.Ticket)
	}
	r.wantFreed(l)
}
