package tell_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/tell"
)

func TestCallsAreMadeInTheOrderInWhichTheyWereAdded(t *testing.T) {
	var q tell.Queue
	var got []int
	for i := range 1000 {
		q.Add(func() { got = append(got, i) })
	}
	q.Flush(time.Minute)
	if len(got) != 1000 || !slices.IsSorted(got) {
		t.Errorf("%d calls, %v", len(got), got[:min(len(got), 20)])
	}
}

// As t.FailNow does in a hook of a test.
func TestACallThatEndsItsGoroutineEndsNoOther(t *testing.T) {
	var q tell.Queue
	called := false
	q.Add(runtime.Goexit)
	q.Add(func() { called = true })
	if q.Flush(time.Minute); !called {
		t.Error("the second call was not made")
	}
}

func TestStopDropsWhatWaitsForACallThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q tell.Queue
		gate, began := make(chan struct{}), time.Now()
		q.Add(func() { <-gate })
		q.Add(func() { t.Error("called after Stop") })
		q.Stop(time.Second)
		q.Add(func() { t.Error("added after Stop") })
		if d, n := time.Since(began), q.Dropped(); d != time.Second || n != 2 {
			t.Errorf("after %v, %d dropped", d, n)
		}
		close(gate)
	})
}

func TestALoggerHasTheAttributesAndTheLevelOfTheOneItWrites(t *testing.T) {
	var out bytes.Buffer
	log := tell.Logger(slog.New(slog.NewTextHandler(&out, nil)))
	if tell.Logger(log) != log || tell.Logger(nil) != nil {
		t.Error("a Logger was made anew")
	}
	log.With("a", 1).WithGroup("g").With("b", 2).Warn("line", "c", 3)
	log.Debug("nothing")
	tell.Of(log).Flush(time.Minute)
	if got := out.String(); !strings.HasSuffix(got, "level=WARN msg=line a=1 g.b=2 g.c=3\n") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
}

func TestALoggerThatDiscardsHasNoQueue(t *testing.T) {
	log := tell.Logger(slog.New(slog.DiscardHandler))
	q := tell.Of(log)
	q.Flush(time.Minute)
	q.Stop(time.Minute)
	if q != nil || q.Dropped() != 0 {
		t.Error("it has one")
	}
}
