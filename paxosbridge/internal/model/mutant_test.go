package model

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/race"
)

// guards are those of the protocol without its extensions.
var guards = []Mutant{
	nofloor,
	nohomeguard,
	flipunfenced,
	noepochbump,
	reopensealed,
	sealunfenced,
	retnoepoch,
	openfirst,
	retbeforeseal,
	reapmoved,
	dropsealed,
	departtoken,
	openolder,
	sealepoch,
	acquiresealed,
	acquireepoch,
}

func TestEveryGuardIsNeeded(t *testing.T) {
	race.Skip(t)
	for _, guard := range guards {
		t.Run(guard.String(), func(t *testing.T) {
			m := full
			m.Without = guard
			breaks(t, m, Everything&^NobodyStuck)
		})
	}
}

func TestWithoutHelpAKeyIsStuck(t *testing.T) {
	race.Skip(t)
	for _, guard := range []Mutant{nohelpopen, nohelpreturn} {
		t.Run(guard.String(), func(t *testing.T) {
			m := small
			m.Without = guard
			breaks(t, m, NobodyStuck)
		})
	}
}

// doc.go says that other guards imply these. If this fails, they are needed, and belong above.
func TestTheseGuardsFollowFromOthers(t *testing.T) {
	race.Skip(t)
	for i, guard := range []Mutant{departowner, departhome, returnhome, sealopen} {
		t.Run(guard.String(), func(t *testing.T) {
			large(t, i)
			m := small
			m.Without = guard
			holds(t, m, Everything&^NobodyStuck)
		})
	}
}

func TestEveryMutantHasAText(t *testing.T) {
	for m := range mutants {
		if mutantTexts[m][0] == "" || mutantTexts[m][1] == "" {
			t.Errorf("mutant %d has no text", m)
		}
	}
}
