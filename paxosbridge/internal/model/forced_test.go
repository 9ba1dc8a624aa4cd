package model

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/race"
)

// fromTheCluster is bounds in which a key is taken back by force and moves out again.
var fromTheCluster = Model{Clients: 1, Movers: 1, Epochs: 5, Grants: 1, Duplicates: 1, Forced: true}

// The cluster may grant while it is out of reach, though no process believes it. Tokens grow in
// each placement, and the fences order the placements.
const forcedPromises = Everything &^ TokensGrow

func TestNoTwoHoldersWorkDuringAForcedReturn(t *testing.T) {
	race.Skip(t)
	large(t, 2)
	holds(t, fromTheCluster, forcedPromises)
	if soaking() {
		m := fromTheCluster
		m.Fences, m.Duplicates = true, 0
		holds(t, m, FencedInOrder)
	}
}

func TestALostClusterMayGrantBelowTheTable(t *testing.T) {
	m := fromTheCluster
	breaks(t, m, TokensGrow)
}

func TestEveryGuardOfAForcedReturnIsNeeded(t *testing.T) {
	for _, guard := range []Mutant{nowait, noforcedepoch, onebump, nosupersede, novalidate} {
		t.Run(guard.String(), func(t *testing.T) {
			m := fromTheCluster
			m.Without = guard
			breaks(t, m, forcedPromises&^NobodyStuck)
		})
	}
}
