package doctor

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// read makes samples of a server whose clock is off and runs at another speed.
func read(off time.Duration, drift float64, trips ...time.Duration) (all []sample) {
	at := time.Unix(1_800_000_000, 0)
	for i, trip := range trips {
		sent := time.Duration(i) * 100 * time.Millisecond
		moment := sent + trip/5 // the server reads early in the round trip
		all = append(all, sample{
			at: at.Add(sent + trip/2), moment: sent + trip/2, half: trip / 2,
			server: at.Add(moment + off + time.Duration(drift*float64(moment))),
		})
	}
	return all
}

func TestOffsetAndDriftAreWithinTheirBounds(t *testing.T) {
	const ms = time.Millisecond
	trips := []time.Duration{9 * ms, 2 * ms, 30 * ms, 5 * ms, 7 * ms, 40 * ms, 3 * ms, 9 * ms, 11 * ms, ms}
	for _, off := range []time.Duration{0, 20 * ms, -time.Second, time.Hour} {
		for _, drift := range []float64{0, 0.2, -0.3} {
			e := estimate(read(off, drift, trips...))
			// The offset at the moment of the reading has grown by the drift since the first.
			grown := time.Duration(math.Abs(drift) * float64(time.Second))
			if (e.offset - off).Abs() > e.offsetError+grown {
				t.Errorf("off by %s at %g: told %s ± %s", off, drift, e.offset, e.offsetError)
			}
			if math.Abs(e.drift-drift) > e.driftError {
				t.Errorf("drift %g: told %g ± %g", drift, e.drift, e.driftError)
			}
			var f Finding
			judgeClock(&f, e, 30*time.Second)
			if wrong := drift != 0 || off.Abs() > 500*ms; wrong != (f.Severity > Info) {
				t.Errorf("off by %s at %g: %s, %s", off, drift, f.Severity, f.Summary)
			}
		}
	}
}

// A drift and an offset that the round trips explain are no finding.
func TestWhatRoundTripsExplainIsNoDrift(t *testing.T) {
	for _, e := range []estimated{
		{drift: 0.27, driftError: 0.28},
		{drift: -0.27, driftError: 0.28},
		{offset: time.Second, offsetError: 600 * time.Millisecond},
	} {
		var f Finding
		if judgeClock(&f, e, 30*time.Second); f.Severity != OK {
			t.Errorf("%+v: %s", e, f.Summary)
		}
	}
}

// This machine's clock is five seconds behind the server's.
func TestAClockThatIsOffIsFound(t *testing.T) {
	for _, k := range testdb.Servers {
		t.Run(k.Name, func(t *testing.T) {
			e := k.Open(t)
			o := &Options{Only: []string{"clock"}, ClockFor: 10 * time.Millisecond}
			x, err := newExaminer(t.Context(), e.DB, e.Dialect, o)
			if err != nil {
				t.Fatal(err)
			}
			defer x.leave()
			x.now = func() time.Time { return time.Now().Add(-5 * time.Second) }
			r, err := x.examine(t.Context())
			if err != nil || r.Worst != Warning || !strings.Contains(r.Findings[0].Summary, "ahead of this") {
				t.Errorf("got %+v, %v", r, err)
			}
			x.now = time.Now
			if r, err = x.examine(t.Context()); err != nil || r.Worst > Info {
				t.Errorf("with its own clock: %+v, %v", r, err)
			}
		})
	}
}

// A cure is pasted: a name that a stranger chose runs nothing.
func TestACureQuotesNames(t *testing.T) {
	const key = "$(touch /tmp/x)`id`'\n"
	var f Finding
	x := &examiner{d: postgres.New().(*sqlstore.Dialect)}
	x.tell(&f, []edge{{from: "a", to: "a", key: key}})
	if want := "release --force --reason deadlock -- '$(touch /tmp/x)`id`'\\''\\x0a'"; !strings.HasSuffix(f.Cure[1], want) {
		t.Errorf("the cure is %s, want %s", f.Cure[1], want)
	}
	f = Finding{}
	x.holdsBack(&f, "prepared transaction", "x'; DROP TABLE y; --", "1")
	if want := "ROLLBACK PREPARED 'x''; DROP TABLE y; --';"; len(f.Cure) != 1 || f.Cure[0] != want {
		t.Errorf("the cure is %q, want %s", f.Cure, want)
	}
}

func TestTimesOfPostgresAreRead(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"50": 50 * time.Millisecond, "50ms": 50 * time.Millisecond, "5s": 5 * time.Second,
		"1min": time.Minute, "2 h": 2 * time.Hour, "0": 0,
	} {
		if got, ok := duration(text); !ok || got != want {
			t.Errorf("%q is read as %s, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "x", "5 parsecs"} {
		if d, ok := duration(text); ok {
			t.Errorf("%q is read as %s", text, d)
		}
	}
}
