package clustertest

import "testing"

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			r := &rig{TB: t, h: h, here: h.Open(t)}
			r.there = r.here
			if h.Another != nil {
				r.there = h.Another(t, r.here)
			}
			p.prove(r)
		})
	}
}

type property struct {
	name  string
	prove func(*rig)
}

var properties = []property{
	{
		"a key without a record is refused in every epoch, and the request makes none",
		refusedWithoutRecord,
	},
	{"an open record is granted in its epoch only", grantedInItsEpoch},
	{"a repeated request in an epoch returns the same lease", repeatedRequest},
	{"an epoch that is opened again keeps its holder and its tokens", openedAgain},
	{"an older epoch is not opened", olderEpoch},
	{"the holder seals, and nothing is granted after", sealed},
	{"only the holder of the key seals it", sealedByOthers},
	{"a holder whose lease was taken does not seal", sealedTooLate},
	{"a sealed epoch is not opened by a late call", lateOpen},
	{"the next epoch opens above a sealed one, and tokens grow", nextEpoch},
	{"a hand-over stays within its epoch", handOver},
	{"superseding seals an older record, held or not, and no newer one", supersede},
	{"a request without an epoch follows the record", withoutEpoch},
	{"records are listed in key order, page by page", records},
	{"the probe answers", probe},
	{"the first claim stays, and every client is told it", claimed},
	{"while clients move the key, it has one holder at a time and tokens grow", race},
}
