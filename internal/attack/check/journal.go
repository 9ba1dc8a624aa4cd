package check

import (
	"cmp"
	"slices"

	"github.com/rowlockdb/rowlock/internal/attack/history"
	"github.com/rowlockdb/rowlock/lease"
)

// journal compares the fenced data with the history. Each write has a name of its own, so that
// every acknowledged one must be there, no refused one may be, and those of unknown outcome may be.
func journal(r *Report, in *Input) {
	rows := make(map[string]*history.Row, len(in.Journal))
	keys := make(map[string][]*history.Row)
	for i := range in.Journal {
		row := &in.Journal[i]
		rows[row.Op] = row
		keys[row.Key] = append(keys[row.Key], row)
	}
	for i := range in.Events {
		if e := &in.Events[i]; e.Kind == history.Write {
			written(r, e, rows[e.Op], in.undone(e))
		}
	}
	for key, rows := range keys {
		ordered(r, key, rows)
		counted(r, key, rows, in.Counters[key])
	}
	for key, n := range in.Counters {
		if len(keys[key]) == 0 && n != 0 {
			r.violation(CounterWrong, key, 0, "the counter is %d and the journal has no row", n)
		}
	}
}

// written compares what a writer was told with what is there.
func written(r *Report, e *history.Event, row *history.Row, undone bool) {
	switch {
	case e.Result == history.OK && row == nil && !undone:
		r.violation(LostWrite, e.Key, e.Told, "%s: value %d under token %d", e.Op, e.Value, e.Token)
	case (e.Result == history.Refused || e.Result == history.Unfenced || e.Result == history.Lost) && row != nil:
		r.violation(RefusedWrite, e.Key, e.Told, "%s: value %d under token %d: %s", e.Op, row.Value, row.Token, e.Err)
	case row != nil && (row.Key != e.Key || row.Token != e.Token || row.Value != e.Value || row.Holder() != e.Holder()):
		r.violation(StrangeWrite, e.Key, e.Told, "%s: the journal has %+v", e.Op, *row)
	}
}

// ordered finds two holders in the data of one key.
func ordered(r *Report, key string, rows []*history.Row) {
	slices.SortStableFunc(rows, func(a, b *history.Row) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Token, b.Token))
	})
	holders := make(map[lease.Token]history.Holder)
	for i, row := range rows {
		if h, ok := holders[row.Token]; ok && h != row.Holder() {
			r.violation(TwoHolders, key, 0, "token %d: %v and %v", row.Token, h, row.Holder())
		}
		holders[row.Token] = row.Holder()
		if i == 0 {
			continue
		}
		switch last := rows[i-1]; {
		case last.Value == row.Value && last.Holder() == row.Holder():
			r.violation(WithinLock, key, 0, "value %d: %s and %s, both under token %d", row.Value, last.Op, row.Op, row.Token)
		case last.Value == row.Value:
			r.violation(ValueTwice, key, 0, "value %d: %s under token %d and %s under token %d", row.Value, last.Op, last.Token, row.Op, row.Token)
		case last.Token > row.Token:
			r.violation(TokenOrder, key, 0, "value %d under token %d, then %d under %d", last.Value, last.Token, row.Value, row.Token)
		}
	}
}

// counted finds increments that were overwritten, or that no writer made.
func counted(r *Report, key string, rows []*history.Row, counter int64) {
	last := rows[len(rows)-1].Value
	if n := int64(len(rows)); counter != n || last != n {
		r.violation(CounterWrong, key, 0, "the counter is %d, the highest value %d, and there are %d rows", counter, last, n)
	}
}
