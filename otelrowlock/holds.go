package otelrowlock

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"go.opentelemetry.io/otel/trace"
)

// term is one lock, or all shared locks of one reader group: readers have the same token.
type term struct {
	key   string
	token lease.Token
}

// hold is a span that has not ended.
type hold struct {
	span   trace.Span
	began  time.Time
	parent trace.SpanContext // that of the call
}

// holds are the spans of locks that are held. The zero value is ready.
type holds struct {
	count atomic.Int64 // of open; most find and take nothing if few traces are recorded

	mu   sync.Mutex
	open map[term][]hold
}

func (h *holds) add(of term, one hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = make(map[term][]hold)
	}
	h.open[of] = append(h.open[of], one)
	h.count.Add(1)
}

// find returns a hold of the term, without taking it out.
func (h *holds) find(of term) (hold, bool) {
	if h.count.Load() == 0 {
		return hold{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if open := h.open[of]; len(open) > 0 {
		return open[0], true
	}
	return hold{}, false
}

// closest is the hold that began closest to a time: of several readers that is this one.
func closest(open []hold, began time.Time) (at int) {
	for i, one := range open {
		if one.began.Sub(began).Abs() < open[at].began.Sub(began).Abs() {
			at = i
		}
	}
	return at
}

// child is the hold of a call with this span. Calls with the same one cannot be told apart.
func child(open []hold, of trace.SpanContext) int {
	return max(0, slices.IndexFunc(open, func(one hold) bool { return one.parent.Equal(of) }))
}

// take takes out the one of the term's holds that pick chooses.
func (h *holds) take(of term, pick func(open []hold) int) (hold, bool) {
	if h.count.Load() == 0 {
		return hold{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	open := h.open[of]
	if len(open) == 0 {
		return hold{}, false
	}
	h.count.Add(-1)
	at := pick(open)
	one := open[at]
	open[at] = open[len(open)-1]
	open[len(open)-1] = hold{}
	if open = open[:len(open)-1]; len(open) == 0 {
		delete(h.open, of)
	} else {
		h.open[of] = open
	}
	return one, true
}
