package locktest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.Tracer.
var traceProperties = []property{
	{"an event is listed as it was written", traceAsWritten},
	{"an event has its time by the store's clock", traceTimes},
	{"events are of keys compared exactly", traceKeys},
	{"events are listed latest first, in pages", tracePages},
	{"a write of the trace adds all events or none", traceAllOrNone},
	{"a sweep of the trace keeps events that are young", traceRetention},
	{"a sweep of the trace goes on until nothing is old", traceBatches},
}

func (r *rig) tracer() lease.Tracer { return able[lease.Tracer](r, r.here) }

func (r *rig) write(events ...lease.TraceEvent) {
	r.Helper()
	if err := r.tracer().WriteTrace(r.ctx, events); err != nil {
		r.Fatalf("write the trace: %v", err)
	}
}

func (r *rig) trace(f lease.TraceFilter) []lease.TraceEvent {
	r.Helper()
	all, err := r.tracer().ReadTrace(r.ctx, f)
	if err != nil {
		r.Fatalf("read the trace: %v", err)
	}
	return all
}

// wantTrace checks which events are listed, by their IDs.
func (r *rig) wantTrace(f lease.TraceFilter, want ...int64) {
	r.Helper()
	got := []int64{}
	for _, e := range r.trace(f) {
		got = append(got, e.ID)
	}
	if !slices.Equal(got, want) {
		r.Errorf("the trace of %+v lists %d, want %d", f, got, want)
	}
}

// ago is an event of so long ago.
func ago(id int64, key string, age time.Duration) lease.TraceEvent {
	return lease.TraceEvent{
		Kind: lease.EventGranted, Key: key, At: time.Now().Add(-age), ID: id, Token: lease.Token(id),
		Owner: lease.NewOwner(),
	}
}

func traceAsWritten(r *rig) {
	first := ago(1, "k\x00\xff'\"\\{}", 0)
	first.Kind, first.Identity, first.Note = lease.EventRenewedLate, `host/1/a"b\`, "Füße, 'quoted'\tand {more}"
	first.Took, first.Detail = 1234567*time.Microsecond, `why: "so"`
	dropped := lease.TraceEvent{Kind: lease.EventDropped, At: first.At, ID: 2, Dropped: 1 << 40}
	last := ago(int64(lease.MaxToken), "k", 0)
	last.At = first.At
	r.write(first, dropped, last)
	all := r.trace(lease.TraceFilter{})
	if len(all) != 3 {
		r.Fatalf("of three events are listed: %+v", all)
	}
	for i, want := range []lease.TraceEvent{last, dropped, first} {
		got := all[i]
		if got.At.IsZero() || got.At.Location() != time.UTC {
			r.Errorf("the time of %+v is not in UTC", got)
		}
		got.At = want.At
		if got != want {
			r.Errorf("the event is listed as %+v, want %+v", got, want)
		}
	}
}

func traceTimes(r *rig) {
	r.write(ago(1, "k", time.Hour), ago(2, "k", 0))
	r.write(ago(3, "k", 30*time.Minute))
	r.wantTrace(lease.TraceFilter{Key: "k"}, 2, 3, 1)
	all := r.trace(lease.TraceFilter{Key: "k"})
	if apart := all[0].At.Sub(all[2].At); (apart - time.Hour).Abs() > time.Second {
		r.Errorf("events of one write that were 1h apart are listed %s apart", apart)
	}
}

func traceKeys(r *rig) {
	keys := []string{"A", "a", "a ", "a\x00", "a/b", "á", "\xff", "\xff\xfe", string(make([]byte, lease.MaxKey))}
	for i, key := range keys {
		r.write(ago(int64(i+1), key, time.Minute-time.Duration(i)*time.Second))
	}
	r.write(lease.TraceEvent{Kind: lease.EventDropped, At: time.Now(), ID: 100, Dropped: 1})
	for i, key := range keys {
		r.wantTrace(lease.TraceFilter{Key: key}, int64(i+1))
	}
	r.wantTrace(lease.TraceFilter{Prefix: "a"}, 5, 4, 3, 2)
	r.wantTrace(lease.TraceFilter{Prefix: "\xff"}, 8, 7)
	r.wantTrace(lease.TraceFilter{Prefix: "b"})
	r.wantTrace(lease.TraceFilter{NoKey: true}, 100)
	r.wantTrace(lease.TraceFilter{}, 100, 9, 8, 7, 6, 5, 4, 3, 2, 1)
}

// Half of the events are of one time, as those of a batch may be.
func tracePages(r *rig) {
	var events []lease.TraceEvent
	for id := int64(1); id <= 8; id++ {
		events = append(events, ago(id, "k", 0))
		if id <= 4 {
			events[id-1].At = events[0].At
		}
	}
	events = append(events, ago(9, "other", 0))
	r.write(events...)
	for name, f := range map[string]lease.TraceFilter{
		"key": {Key: "k", Limit: 3}, "prefix": {Prefix: "k", Limit: 3},
	} {
		var got []int64
		for page := r.trace(f); len(page) > 0 && len(got) < 20; page = r.trace(f) {
			if len(page) > f.Limit {
				r.Errorf("by %s: a page of %d has %d events", name, f.Limit, len(page))
			}
			for _, e := range page {
				got = append(got, e.ID)
			}
			f.Before = page[len(page)-1]
		}
		if want := []int64{8, 7, 6, 5, 4, 3, 2, 1}; !slices.Equal(got, want) {
			r.Errorf("by %s: the pages list %d, want %d", name, got, want)
		}
	}
}

func traceAllOrNone(r *rig) {
	for _, bad := range []lease.TraceEvent{ago(2, string(make([]byte, lease.MaxKey+1)), 0), {Key: "k", ID: 2}} {
		err := r.tracer().WriteTrace(r.ctx, []lease.TraceEvent{ago(1, "k", 0), bad})
		if !errors.Is(err, lease.ErrInvalidKey) && !errors.Is(err, lease.ErrConfig) {
			r.Errorf("write of %+v: %v, want ErrInvalidKey or ErrConfig", bad, err)
		}
	}
	r.wantTrace(lease.TraceFilter{})
	r.write()
	r.wantTrace(lease.TraceFilter{})
}

func (r *rig) sweepTrace(o lease.SweepOptions, want int64) {
	r.Helper()
	if n, err := r.tracer().SweepTrace(r.ctx, o); err != nil || n != want {
		r.Errorf("a sweep of the trace %+v removes %d, %v, want %d", o, n, err, want)
	}
}

func traceRetention(r *rig) {
	r.write(ago(1, "k", 3*time.Hour), ago(2, "a", 2*time.Hour), ago(3, "k", 30*time.Minute), ago(4, "z", 0))
	if _, err := r.tracer().SweepTrace(r.ctx, lease.SweepOptions{Retention: -1}); err == nil {
		r.Error("a sweep of the trace with a negative retention is accepted")
	}
	r.sweepTrace(lease.SweepOptions{Retention: time.Hour}, 2)
	r.wantTrace(lease.TraceFilter{}, 4, 3)
	r.sweepTrace(lease.SweepOptions{Retention: time.Hour}, 0)
	r.wantTrace(lease.TraceFilter{Key: "k"}, 3)
}

func traceBatches(r *rig) {
	for i := range 7 {
		r.write(ago(int64(i+1), fmt.Sprint("k", i), time.Hour))
	}
	r.sweepTrace(lease.SweepOptions{Retention: time.Minute, Batch: 3}, 7)
	r.wantTrace(lease.TraceFilter{})
}
