package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
)

func (p *program) history() *cobra.Command {
	var prefix string
	var limit int
	c := &cobra.Command{
		Use:   "history [KEY]",
		Short: "List what has become of a key: its trace, and forced releases",
		Long: long(`
List what has become of one key, or of all, latest first: the records of rowlock release --force and
of Client.ForceRelease, which are always kept, and the trace of clients with Config.Trace. An event
"dropped" says how many events of any keys a client could not write.`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 1 {
				return usage("--limit %d: at least 1", limit)
			}
			return p.listHistory(c.Context(), atMostOne(args), prefix, limit)
		},
	}
	c.Flags().StringVar(&prefix, "begins", "", "of keys that begin so")
	c.Flags().IntVarP(&limit, "limit", "n", page, "events to list")
	return p.listed(c)
}

func (p *program) listHistory(ctx context.Context, text, prefix string, limit int) (err error) {
	f := rowlock.TraceFilter{Limit: limit}
	if text != "" {
		if f.Key, err = keytext.Read(text); err != nil {
			return err
		}
	}
	if f.Prefix, err = keytext.Prefix(prefix); err != nil {
		return err
	}
	_, client, end, err := p.client(adapter.Reading(ctx), func(cfg *rowlock.Config) { cfg.Reaper.Off = true })
	if err != nil {
		return err
	}
	defer end()
	all, err := client.Trace(ctx, f)
	if err != nil {
		return err
	}
	if !p.out.IsJSON() {
		return p.printHistory(all)
	}
	records, err := client.ForceReleases(ctx, lease.ForcedFilter{Key: f.Key, Prefix: f.Prefix, Limit: limit})
	if err != nil {
		return err
	}
	return p.out.JSON(withRecords(all, records))
}

// happened is an event in JSON.
type happened struct {
	Event   string      `json:"event"`
	Time    time.Time   `json:"time"`
	Key     string      `json:"key,omitempty"`
	Token   lease.Token `json:"token,omitempty"`
	Holder  string      `json:"holder,omitempty"`
	Note    string      `json:"note,omitempty"`
	Seconds float64     `json:"seconds,omitempty"`
	Dropped int64       `json:"dropped,omitempty"`
	Detail  string      `json:"detail,omitempty"`
	takenAway
}

// takenAway is what the record of a forced release adds to its event.
type takenAway struct {
	By      string      `json:"by,omitempty"`
	Session string      `json:"database_user,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Raised  lease.Token `json:"raised_to,omitempty"`
}

// withRecords returns events with what the records of forced releases say of them.
func withRecords(all []rowlock.TraceEvent, records []lease.Forced) []happened {
	type grant struct {
		key   string
		token lease.Token
	}
	taken := make(map[grant]lease.Forced, len(records))
	for _, f := range records {
		taken[grant{f.Key, f.Lease.Token}] = f
	}
	out := make([]happened, len(all))
	for i, e := range all {
		out[i] = happened{
			Event: e.Kind.String(), Time: e.At, Key: keytext.Show(e.Key), Token: e.Token, Holder: e.Identity,
			Note: e.Note, Seconds: e.Took.Seconds(), Dropped: e.Dropped, Detail: e.Detail,
		}
		if f, ok := taken[grant{e.Key, e.Token}]; ok && e.Kind == lease.EventForced {
			out[i].takenAway = takenAway{f.By, f.Session, f.Reason, f.Raised}
		}
	}
	return out
}

func (p *program) printHistory(all []rowlock.TraceEvent) error {
	if len(all) == 0 {
		fmt.Fprintln(p.stderr, "rowlock: no such records; events are kept of clients with Config.Trace")
		return nil
	}
	rows := make([][]string, len(all))
	for i, e := range all {
		rows[i] = []string{
			e.At.Local().Format(time.DateTime), e.Kind.String(), keytext.Show(e.Key), "", took(e.Took),
			listing.Plain(lease.Describe(e.Identity, e.Note)), listing.Plain(e.Detail),
		}
		if e.Token != 0 {
			rows[i][3] = e.Token.String()
		}
		if e.Kind == lease.EventDropped {
			rows[i][6] = strconv.FormatInt(e.Dropped, 10) + " events are missing"
		}
	}
	return p.out.Table([]listing.Column{
		{Name: "TIME"},
		{Name: "EVENT"},
		{Name: "KEY", Least: 24},
		{Name: "TOKEN", Right: true, Rank: 3},
		{Name: "TOOK", Right: true, Rank: 4},
		{Name: "HOLDER", Least: 16, Rank: 2},
		{Name: "DETAIL", Least: 10, Rank: 1},
	}, rows)
}

// took is a time of an event, rounded as people read it.
func took(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
