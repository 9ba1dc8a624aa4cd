package doctor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// sample is one reading of the server's clock. at is the time of this machine in the middle of the
// round trip, and moment the same by a clock that does not step. The server read its clock within
// half a round trip of it.
type sample struct {
	at, server   time.Time
	moment, half time.Duration
}

// samples is how often the server's clock is read.
const samples = 10

// clock compares the server's clock with this machine's. Leases are compared by the server's alone;
// what matters to them is that it does not step, and that both clocks run at one rate.
func clock(ctx context.Context, x *examiner) (f Finding, err error) {
	if x.d.Name() == "sqlite" {
		f.fine("the database's clock is this machine's")
		f.saw("clock", "this machine's", "SQLite")
		return f, nil
	}
	all, err := x.sampleClock(ctx)
	if err != nil {
		return f, err
	}
	e := estimate(all)
	f.saw("offset of the server's clock", fmt.Sprintf("%s ± %s", e.offset, e.offsetError),
		fmt.Sprintf("%d readings, each bounded by its round trip", len(all)))
	f.saw("drift of the server's clock", fmt.Sprintf("%+.2f %% ± %.2f %%", e.drift*100,
		e.driftError*100), fmt.Sprintf("the first and the last readings, %s apart", e.span))
	judgeClock(&f, e, x.o.TTL)
	return f, nil
}

func (x *examiner) sampleClock(ctx context.Context) (all []sample, err error) {
	pause := time.NewTicker(max(x.o.ClockFor/samples, time.Millisecond))
	defer pause.Stop()
	began := time.Now()
	for range samples {
		s, err := x.sample(ctx, began)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-pause.C:
		}
	}
	return all, nil
}

func (x *examiner) sample(ctx context.Context, began time.Time) (s sample, err error) {
	sent := time.Since(began)
	at := x.now().Round(0)
	rows, err := x.rows(ctx, "clock")
	got := time.Since(began)
	if err != nil {
		return s, err
	}
	micros, err := strconv.ParseInt(rows[0][0], 10, 64)
	s.half = (got - sent) / 2
	s.moment, s.at, s.server = sent+s.half, at.Add(s.half), time.UnixMicro(micros)
	return s, err
}

// estimated says how the server's clock differs, and by how much that may be wrong.
type estimated struct {
	offset, offsetError time.Duration
	drift, driftError   float64
	span                time.Duration
}

// estimate takes the offset from the sample with the shortest round trip, and the drift from the
// shortest of the first half and of the second: how long it was between them by the server's clock,
// beside how long it was.
func estimate(all []sample) (e estimated) {
	best := shortest(all)
	e.offset, e.offsetError = best.server.Sub(best.at), best.half
	first, last := shortest(all[:len(all)/2]), shortest(all[len(all)/2:])
	e.span = last.moment - first.moment
	if e.span > 0 {
		e.drift = float64(last.server.Sub(first.server)-e.span) / float64(e.span)
		e.driftError = float64(first.half+last.half+2*time.Microsecond) / float64(e.span)
	}
	return e
}

func shortest(all []sample) sample {
	return slices.MinFunc(all, func(a, b sample) int { return int(a.half - b.half) })
}

// A lease ends at its holder this much earlier than at the server: the default of Config.Margin is
// TTL/10, and 500 ms at least.
const leastMargin = 500 * time.Millisecond

func judgeClock(f *Finding, e estimated, ttl time.Duration) {
	drift := math.Max(0, math.Abs(e.drift)-e.driftError)
	margin := float64(max(ttl/10, leastMargin)) / float64(ttl)
	switch {
	case drift > margin:
		f.raise(Critical, fmt.Sprintf("the server's clock runs %+.1f %% faster than this machine's, or steps: "+
			"two owners can believe in one lease; fences still hold", e.drift*100),
			"run chrony or systemd-timesyncd on the database server, and let it slew and not step")
	case drift > 0.001:
		f.raise(Warning, fmt.Sprintf("the server's clock runs %+.2f %% faster than this machine's", e.drift*100),
			"run chrony or systemd-timesyncd on both machines")
	}
	if off := e.offset.Abs() - e.offsetError; off > leastMargin {
		f.raise(Warning, fmt.Sprintf("the server's clock is %s %s: locks do not compare the two clocks, but "+
			"one of them is not synchronized, and leases end early when the server's is set forward",
			off.Round(time.Millisecond), aheadOrBehind(e.offset)),
			"run chrony or systemd-timesyncd on both machines: chronyc tracking")
	}
	f.fine("the server's clock agrees with this machine's")
}

func aheadOrBehind(offset time.Duration) string {
	if offset > 0 {
		return "ahead of this machine's"
	}
	return "behind this machine's"
}
