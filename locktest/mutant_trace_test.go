package locktest

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

func (m *mutant) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	return m.write(ctx, events)
}

func (m *mutant) ReadTrace(ctx context.Context, f lease.TraceFilter) ([]lease.TraceEvent, error) {
	return m.read(ctx, f)
}

func (m *mutant) SweepTrace(ctx context.Context, o lease.SweepOptions) (int64, error) {
	return m.clean(ctx, o)
}

// writtenAs writes what change makes of each event.
func writtenAs(change func(e *lease.TraceEvent)) func(m *mutant) {
	return func(m *mutant) {
		m.write = func(ctx context.Context, events []lease.TraceEvent) error {
			events = slices.Clone(events)
			for i := range events {
				change(&events[i])
			}
			return m.fencing.WriteTrace(ctx, events)
		}
	}
}

// tracedAs lists what change makes of the filter.
func tracedAs(change func(f *lease.TraceFilter)) func(m *mutant) {
	return func(m *mutant) {
		m.read = func(ctx context.Context, f lease.TraceFilter) ([]lease.TraceEvent, error) {
			change(&f)
			return m.fencing.ReadTrace(ctx, f)
		}
	}
}

// cleanedAs sweeps with what change makes of the options.
func cleanedAs(change func(o *lease.SweepOptions)) func(m *mutant) {
	return func(m *mutant) {
		m.clean = func(ctx context.Context, o lease.SweepOptions) (int64, error) {
			change(&o)
			return m.fencing.SweepTrace(ctx, o)
		}
	}
}

const (
	asItWasWritten  = "an event is listed as it was written"
	comparedExactly = "events are of keys compared exactly"
	inPages         = "events are listed latest first, in pages"
	youngStay       = "a sweep of the trace keeps events that are young"
)

var traceFlaws = []flaw{
	{
		"events have no note", writtenAs(func(e *lease.TraceEvent) { e.Note = "" }),
		[]string{asItWasWritten},
	},
	{
		"events have times in ms", writtenAs(func(e *lease.TraceEvent) { e.Took = e.Took.Truncate(time.Millisecond) }),
		[]string{asItWasWritten},
	},
	{
		"a count of dropped events has 32 bits",
		writtenAs(func(e *lease.TraceEvent) { e.Dropped = int64(int32(e.Dropped)) }),
		[]string{asItWasWritten},
	},
	{
		"events happen when they are written", writtenAs(func(e *lease.TraceEvent) { e.At = time.Now() }),
		[]string{"an event has its time by the store's clock", youngStay},
	},
	{"keys of events are text", writtenAs(func(e *lease.TraceEvent) {
		e.Key = string(bytes.ToValidUTF8([]byte(e.Key), []byte("?")))
	}), []string{comparedExactly, asItWasWritten}},
	{"keys of events have no trailing spaces", writtenAs(func(e *lease.TraceEvent) {
		e.Key = string(bytes.TrimRight([]byte(e.Key), " "))
	}), []string{comparedExactly}},
	{
		"events are of every key", tracedAs(func(f *lease.TraceFilter) { f.Key, f.NoKey = "", false }),
		[]string{comparedExactly, inPages},
	},
	{
		"events are of every prefix", tracedAs(func(f *lease.TraceFilter) { f.Prefix = "" }),
		[]string{comparedExactly, inPages},
	},
	{
		"every page of events is the first",
		tracedAs(func(f *lease.TraceFilter) { f.Before = lease.TraceEvent{} }),
		[]string{inPages},
	},
	{
		"a page of events leaves out those of one time",
		tracedAs(func(f *lease.TraceFilter) { f.Before.ID = 0 }),
		[]string{inPages},
	},
	{
		"pages of events have any length", tracedAs(func(f *lease.TraceFilter) { f.Limit = 0 }),
		[]string{inPages},
	},
	{"events are listed earliest first", func(m *mutant) {
		m.read = func(ctx context.Context, f lease.TraceFilter) ([]lease.TraceEvent, error) {
			all, err := m.fencing.ReadTrace(ctx, f)
			slices.Reverse(all)
			return all, err
		}
	}, []string{inPages, comparedExactly}},
	{"events are written one by one", func(m *mutant) {
		m.write = func(ctx context.Context, events []lease.TraceEvent) error {
			for i := range events {
				if err := m.fencing.WriteTrace(ctx, events[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		}
	}, []string{"a write of the trace adds all events or none"}},
	{
		"a sweep of the trace removes all", cleanedAs(func(o *lease.SweepOptions) { o.Retention = 0 }),
		[]string{youngStay},
	},
	{
		"a sweep of the trace ignores a negative retention",
		cleanedAs(func(o *lease.SweepOptions) { o.Retention = o.Retention.Abs() }),
		[]string{youngStay},
	},
	{"a sweep of the trace removes a batch", func(m *mutant) {
		m.clean = func(ctx context.Context, o lease.SweepOptions) (int64, error) {
			all, err := m.fencing.ReadTrace(ctx, lease.TraceFilter{})
			if err != nil || o.Batch == 0 || len(all) <= o.Batch {
				return m.fencing.SweepTrace(ctx, o)
			}
			slices.Reverse(all)
			o.Retention = time.Since(all[o.Batch].At) + time.Nanosecond
			return m.fencing.SweepTrace(ctx, o)
		}
	}, []string{"a sweep of the trace goes on until nothing is old"}},
}
