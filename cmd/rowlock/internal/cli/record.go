package cli

import (
	"strconv"

	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/lease"
)

// record is a key in JSON. Keys are shown as keytext does; times are seconds.
type record struct {
	Key       string      `json:"key"`
	Held      bool        `json:"held"`
	Holder    string      `json:"holder,omitempty"`
	Note      string      `json:"note,omitempty"`
	Token     lease.Token `json:"token"`
	Owner     string      `json:"owner,omitempty"`
	Age       float64     `json:"age_seconds"`
	Remaining float64     `json:"remaining_seconds"`
	Shared    bool        `json:"shared,omitempty"`
	Members   int         `json:"members,omitempty"`
	Placement string      `json:"placement"`
	// Corrupt says what is wrong with a row that cannot be read. The other fields are what could
	// be.
	Corrupt string `json:"corrupt,omitempty"`
}

func recordOf(r lease.Record) record {
	identity, note := lease.SplitNote(r.Note)
	out := record{
		Key: keytext.Show(r.Key), Held: r.Held, Holder: identity, Note: note, Token: r.Token,
		Age: r.Age.Seconds(), Remaining: r.Remaining.Seconds(),
		Shared: r.Shared, Members: r.Members, Placement: shown.Placement(r.Placement),
	}
	if !r.Owner.IsZero() {
		out.Owner = r.Owner.String()
	}
	if r.Err != nil {
		out.Corrupt = r.Err.Error()
	}
	return out
}

var recordColumns = []listing.Column{
	{Name: "KEY", Least: 24},
	{Name: "HOLDER", Least: 16, Rank: 1},
	{Name: "NOTE", Least: 10, Rank: 4},
	{Name: "AGE", Right: true, Rank: 3},
	{Name: "LEFT", Right: true, Rank: 2},
	{Name: "TOKEN", Right: true, Rank: 5},
}

func recordRow(r lease.Record) []string {
	identity, note := lease.SplitNote(r.Note)
	row := []string{
		keytext.Show(r.Key), listing.Plain(identity), listing.Plain(note), listing.Span(r.Age),
		listing.Span(r.Remaining), r.Token.String(),
	}
	switch {
	case r.Err != nil:
		row[1], row[3], row[4] = "(corrupt) "+row[1], "-", "-"
	case r.Placement != lease.PlacementTable:
		row[1], row[4] = "("+shown.Placement(r.Placement)+")", "-"
	case !r.Held && r.Owner.IsZero():
		row[1], row[4] = "(free)", "-"
	case !r.Held:
		row[1], row[4] = "(expired) "+row[1], "-"+listing.Span(-r.Remaining)
	case r.Members > 1:
		row[1] += " +" + strconv.Itoa(r.Members-1)
	}
	return row
}
