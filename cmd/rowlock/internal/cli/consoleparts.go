package cli

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/doctor"
)

// pageOfEvents is how much of a key's timeline a page of the console shows.
const pageOfEvents = 200

// timeline reads the trace of a key, with its forced releases, for the console.
func timeline(client *rowlock.Client) func(context.Context, string) ([]console.Event, error) {
	return func(ctx context.Context, key string) ([]console.Event, error) {
		all, err := client.Trace(ctx, rowlock.TraceFilter{Key: key, Limit: pageOfEvents})
		if err != nil {
			return nil, err
		}
		events := make([]console.Event, len(all))
		for i, e := range all {
			events[i] = console.Event{
				At: e.At, Kind: e.Kind.String(), Token: e.Token, Identity: e.Identity, Note: e.Note,
				Detail: e.Detail,
			}
			if e.Dropped > 0 {
				events[i].Detail = fmt.Sprintf("%d events are missing", e.Dropped)
			}
		}
		return events, nil
	}
}

// findings are those of the doctor, for the console.
func findings(t *target.Target) func(context.Context) ([]console.Finding, error) {
	return func(ctx context.Context) ([]console.Finding, error) {
		r, err := doctor.Examine(ctx, t.DB, t.Dialect, nil)
		if err != nil {
			return nil, err
		}
		found := make([]console.Finding, len(r.Findings))
		for i, f := range r.Findings {
			found[i] = console.Finding{Severity: f.Severity.String(), Summary: f.ID + ": " + f.Summary, Cure: f.Cure}
			for _, e := range f.Evidence {
				found[i].Evidence = append(found[i].Evidence, fmt.Sprintf("%s = %s (%s)", e.Name, e.Value, e.From))
			}
		}
		return found, nil
	}
}
