package clustertest

import "github.com/rowlockdb/rowlock/paxosbridge"

func records(r *rig) {
	keys := []string{"A", "a", "a ", "a\x00", "b", "\xff"}
	for i, key := range keys {
		r.open(key, int64(2*i+1))
	}
	r.seal(r.hold("a ", 5), true)
	want := map[string]paxosbridge.Record{}
	for i, key := range keys {
		want[key] = paxosbridge.Record{Key: key, Epoch: int64(2*i + 1), Sealed: key == "a "}
	}
	after, seen := "", 0
	for {
		page, err := r.there.Records(r.Context(), after, 2)
		r.must(err)
		for _, got := range page {
			if got != want[got.Key] || got.Key <= after {
				r.Errorf("after %q came %+v, want %+v", after, got, want[got.Key])
			}
			after = got.Key
			seen++
		}
		if len(page) < 2 {
			break
		}
	}
	if seen != len(keys) {
		r.Errorf("%d records were listed, want %d", seen, len(keys))
	}
}

func probe(r *rig) {
	r.must(r.here.Probe(r.Context()))
	if got, err := r.here.Records(r.Context(), "", 10); err != nil || len(got) != 0 {
		r.Errorf("records are %+v, %v: want none, and not that of the probe", got, err)
	}
}

// claimed is for clusters that remember whose they are.
func claimed(r *rig) {
	here, can := r.here.(paxosbridge.Claimer)
	if !can {
		return
	}
	there := r.there.(paxosbridge.Claimer)
	for _, c := range []struct {
		paxosbridge.Claimer
		owner string
	}{{here, "1 first"}, {there, "1 second"}, {here, "1 second"}, {there, "1 first"}} {
		if first, err := c.ClaimFor(r.Context(), c.owner); err != nil || first != "1 first" {
			r.Errorf("the claim of %q returns %q, %v", c.owner, first, err)
		}
	}
	if got, err := r.here.Records(r.Context(), "", 10); err != nil || len(got) != 0 {
		r.Errorf("records are %+v, %v: want none, and not the claim", got, err)
	}
}
