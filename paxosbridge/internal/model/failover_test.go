package model

import (
	"math/bits"
	"testing"

	"github.com/rowlockdb/rowlock/internal/race"
)

// Each failover loses at most what Lags says. The search proves in all states that the other
// promises hold.
var failovers = []struct {
	name   string
	lags   Verbs
	audit  Audit
	broken Promise
}{
	{"a synchronous replica loses nothing", 0, NoAudit, 0},
	{"a lost Depart, unnoticed", Departs, NoAudit, OnePlacement | OneHolder | OneBeliever | TokensGrow},
	{
		"a lost Depart, and an audit sometime after", Departs, AuditAlways,
		OnePlacement | OneHolder | OneBeliever | TokensGrow,
	},
	{
		"a lost Depart, and an audit before the next grant", Departs, AuditBefore,
		OnePlacement | OneHolder | OneBeliever | TokensGrow,
	},
	{"a lost Depart, and an audit before that closes the next epoch", Departs, AuditAndClose, 0},
	{"a lost Return", Returns, NoAudit, 0},
	{"a lost grant", Grants, NoAudit, OneBeliever | TokensGrow | HomeTokensGrow},
	{
		"a lost grant, which no audit can see", Grants, AuditAndClose,
		OneBeliever | TokensGrow | HomeTokensGrow,
	},
}

func TestWhatAFailoverBreaks(t *testing.T) {
	race.Skip(t)
	for i, f := range failovers {
		t.Run(f.name, func(t *testing.T) {
			large(t, i%4)
			m := Model{
				Clients: 1, Movers: 1, Epochs: 2, Grants: 2, Failover: true, Lags: f.lags,
				Audit: f.audit,
			}
			for left := f.broken; left != 0; left &= left - 1 {
				breaks(t, m, 1<<bits.TrailingZeros8(uint8(left)))
			}
			holds(t, m, Everything&^f.broken)
			if soaking() {
				m.Epochs = 3
				holds(t, m, Everything&^f.broken)
			}
		})
	}
}

// The data that a fence guards are in the same database, and are lost together with the locks.
func TestNoFailoverBreaksTheOrderOfFencedWrites(t *testing.T) {
	race.Skip(t)
	large(t, 3)
	for _, f := range failovers {
		if f.broken&TokensGrow == 0 || f.audit != NoAudit && !soaking() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			m := Model{
				Clients: 1, Movers: 1, Epochs: 2, Grants: 2, Failover: true, Lags: f.lags,
				Audit: f.audit, Fences: true,
			}
			holds(t, m, FencedInOrder)
		})
	}
}

// An audit's request may be late too.
func TestAnAuditHarmsNothing(t *testing.T) {
	race.Skip(t)
	m := small
	m.Audit = AuditAlways
	holds(t, m, Everything)
}

func TestEveryGuardOfRecallIsNeeded(t *testing.T) {
	race.Skip(t)
	for _, guard := range []Mutant{recalllower, recallfloor} {
		t.Run(guard.String(), func(t *testing.T) {
			m := small
			m.Audit, m.Without = AuditAlways, guard
			breaks(t, m, Everything&^NobodyStuck)
		})
	}
}
