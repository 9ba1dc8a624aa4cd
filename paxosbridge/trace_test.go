package paxosbridge_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

func TestKeysInTheClusterAreTracedInTheTable(t *testing.T) {
	r := newRig(t, paxosbridge.Config{})
	b := r.Bridge
	cfg := &rowlock.Config{Trace: rowlock.TraceConfig{On: true}}
	cfg.Reaper.Off = true
	c, err := rowlock.New(b, cfg)
	r.must(err)
	take := func() {
		l, err := c.Lock(t.Context(), "k")
		r.must(err)
		r.must(l.Unlock(t.Context()))
	}
	take()
	r.must(b.MoveOut(t.Context(), "k", "by hand"))
	take()
	r.must(b.MoveBack(t.Context(), "k", "by hand"))
	r.must(c.Close()) // which writes the trace
	after, err := rowlock.New(r.table, &rowlock.Config{})
	r.must(err)
	defer after.Close()
	all, err := after.Trace(t.Context(), rowlock.TraceFilter{Key: "k"})
	r.must(err)
	var got []string
	for _, e := range slices.Backward(all) {
		got = append(got, fmt.Sprint(e.Kind, ": ", e.Detail))
	}
	want := []string{"granted: ", "moved: to placement 1: by hand", "granted: ", "moved: back into the table: by hand"}
	if !slices.Equal(got, want) {
		t.Errorf("the trace is %q, want %q", got, want)
	}
}
