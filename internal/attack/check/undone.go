package check

import (
	"slices"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// Span is a time. To is its end, on the history's clock.
type Span struct{ From, To int64 }

// meets reports whether a call was under way in one of the spans, or sent before and told after it.
func meets(spans []Span, sent, told int64) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return sent <= s.To && told >= s.From })
}

// undone reports whether a failover may have undone what a call did.
func (in *Input) undone(e *history.Event) bool { return meets(in.Undone, e.Sent, e.Told) }
