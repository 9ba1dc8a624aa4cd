package locktest

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// retire has tickets leave, as if their waiters had gone.
func (m *mutant) retire(tickets ...lease.Ticket) {
	_ = m.fencing.Leave(context.Background(), waiters(tickets))
}

func (m *mutant) enroll(tickets ...lease.Ticket) {
	_ = m.fencing.Join(context.Background(), tickets)
}

var turnFlaws = []flaw{
	{"tenants are ignored", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			if t.CheckTenant() == nil {
				t.Tenant = ""
			}
			return []lease.Ticket{t}
		})
	}, []string{
		"tenants take turns, and each tenant's tickets keep their order", "a tenant that comes again takes no other's turn",
		"a tenant's tickets that join in one batch take a turn each", "places count the tickets ahead as turns have them",
		"tickets without a tenant are passed in turn and never go forward", "whatever tenants do, they are served in turn",
	}},
	{"the tenant that came first is served before all others", func(m *mutant) { // a tenant starves
		age := 2 * time.Hour
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			first := t.Tenant == "a"
			t.Tenant = ""
			m.enroll(t)
			if age -= time.Minute; first {
				m.AgeTicket(t.Key, t.Owner, age)
			}
			return nil
		})
	}, []string{
		"tenants take turns, and each tenant's tickets keep their order", "a tenant that comes again takes no other's turn",
		"a priority puts no tenant before another",
	}},
	{"a tenant's last ticket is its first", func(m *mutant) {
		of := make(map[string][]lease.Ticket)
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			if t.Tenant == "" || slices.ContainsFunc(of[t.Tenant], func(u lease.Ticket) bool { return u.Owner == t.Owner }) {
				return []lease.Ticket{t}
			}
			m.retire(of[t.Tenant]...)
			of[t.Tenant] = slices.Insert(of[t.Tenant], 0, t)
			m.enroll(of[t.Tenant]...)
			return nil
		})
	}, []string{
		"tenants take turns, and each tenant's tickets keep their order", "a heartbeat keeps a tenant's turn",
		"places count the tickets ahead as turns have them", "the tickets of a single tenant are served as those of none",
	}},
	{"a single tenant's priorities are ignored", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			if t.Tenant != "" && t.CheckPriority() == nil {
				t.Priority = 5
			}
			return []lease.Ticket{t}
		})
	}, []string{"the tickets of a single tenant are served as those of none"}},
	{"a tenant without a ticket goes to the front", func(m *mutant) { // its last turn is forgotten
		before := make(map[string]bool)
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			again := before[t.Tenant]
			before[t.Tenant] = true
			m.enroll(t)
			if again && t.Tenant != "a" {
				m.AgeTicket(t.Key, t.Owner, time.Hour)
			}
			return nil
		})
	}, []string{"a tenant that comes again takes no other's turn"}},
	{"a batch of one tenant shares a turn", func(m *mutant) {
		m.join = func(ctx context.Context, tickets []lease.Ticket) error {
			var places []lease.Owner
			for _, t := range tickets {
				if t.Tenant == "a" && len(tickets) > 1 { // as a statement of one snapshot does
					t.Tenant += string(rune('0' + len(places)))
					places = append(places, t.Owner)
				}
				if err := m.fencing.Join(ctx, []lease.Ticket{t}); err != nil {
					return err
				}
			}
			return nil
		}
	}, []string{"a tenant's tickets that join in one batch take a turn each"}},
	{"tickets without a tenant are a tenant's", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			if t.Tenant == "" {
				t.Tenant = "none"
			}
			return []lease.Ticket{t}
		})
	}, []string{
		"tickets without a tenant are passed in turn and never go forward", "whatever tenants do, they are served in turn",
	}},
	{"a priority puts a tenant forward", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			m.enroll(t)
			if t.Tenant != "" && t.Priority > 5 {
				m.AgeTicket(t.Key, t.Owner, time.Hour)
			}
			return nil
		})
	}, []string{"a priority puts no tenant before another"}},
	{"a heartbeat takes a new turn", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			m.retire(t)
			return []lease.Ticket{t}
		})
	}, []string{"a heartbeat keeps a tenant's turn"}},
	{"a long name of a tenant is cut", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			t.Tenant = t.Tenant[:min(len(t.Tenant), 40)]
			return []lease.Ticket{t}
		})
	}, []string{"a ticket of a tenant whose name is too long is refused"}},
	{"now and then a tenant is forgotten", func(m *mutant) {
		m.eachJoin(func(t lease.Ticket) []lease.Ticket {
			if rand.IntN(8) == 0 {
				t.Tenant = ""
			}
			return []lease.Ticket{t}
		})
	}, []string{"whatever tenants do, they are served in turn"}},
}
