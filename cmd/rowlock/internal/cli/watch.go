package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/listing"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/spf13/cobra"
)

func (p *program) watch() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print what becomes of keys, as it happens",
		Long: long(`
Print a line for each key that is held, and then for each that is granted, released, expired,
lapsed, lost, forced or moved, until Ctrl-C. A key whose row cannot be read is bad, which is printed
once. It compares listings that are --every apart: a key that was locked for a shorter time may not
be seen. An expired lease was not renewed. A lapsed one had a MinHold: its holder had unlocked it, or
has died. -o json prints one object a line. When the database goes away it says so, and goes on when
it is back.`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.watchKeys(c.Context(), atMostOne(args), every)
		},
	}
	c.Flags().DurationVar(&every, "every", time.Second, "time between two listings")
	return p.listed(c)
}

// event is one in JSON; times are seconds.
type event struct {
	Time      time.Time   `json:"time"`
	Event     string      `json:"event"`
	Key       string      `json:"key"`
	Token     lease.Token `json:"token"`
	Holder    string      `json:"holder,omitempty"`
	Note      string      `json:"note,omitempty"`
	Remaining float64     `json:"remaining_seconds,omitempty"`
	Skipped   int         `json:"skipped,omitempty"`
	Error     string      `json:"error,omitempty"`
}

func (p *program) watchKeys(ctx context.Context, text string, every time.Duration) error {
	prefix, err := keytext.Prefix(text)
	if err != nil {
		return err
	}
	t, client, end, err := p.client(adapter.Reading(ctx), func(cfg *rowlock.Config) {
		cfg.WatchEvery, cfg.Hints, cfg.Reaper.Off = every, rowlock.HintsOff, true
	})
	if err != nil {
		return err
	}
	defer end()
	gone := false
	for e, err := range client.Watch(ctx, prefix) {
		switch {
		case ctx.Err() != nil:
			return nil
		case strings.HasPrefix(e.Key, lease.Reserved) && prefix == "":
			continue // rowlock's own
		case err != nil && e.Key != "": // its row is bad, and the database answers
			if err := p.printBad(e.Key, err); err != nil {
				return err
			}
			continue
		case err != nil && gone:
			continue // once is enough
		case err != nil:
			gone = true
			fmt.Fprintf(p.stderr, "%s: trying again\n", oneLine(err))
			continue
		case gone:
			gone = false
			fmt.Fprintf(p.stderr, "rowlock: %s answers again\n", t.Name)
		}
		if err := p.printEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// printBad prints a key whose row cannot be read: nothing else is known of it.
func (p *program) printBad(key string, why error) error {
	if p.out.IsJSON() {
		return p.out.JSON(event{
			Time: time.Now(), Event: "bad", Key: keytext.Show(key), Error: oneLine(why),
		})
	}
	p.out.Line("%s  %-8s  %s  %s", time.Now().Format(time.TimeOnly), "bad", keytext.Show(key),
		listing.Plain(oneLine(why)))
	return p.out.Err
}

func (p *program) printEvent(e rowlock.Event) error {
	if p.out.IsJSON() {
		return p.out.JSON(event{
			Time: time.Now(), Event: e.Kind.String(), Key: keytext.Show(e.Key), Token: e.Token,
			Holder: e.Identity, Note: e.Note, Remaining: e.Remaining.Seconds(), Skipped: e.Skipped,
		})
	}
	line := time.Now().Format(time.TimeOnly) + "  " + fmt.Sprintf("%-8s", e.Kind) + "  " +
		keytext.Show(e.Key) + "  token " + e.Token.String()
	if e.Identity != "" {
		line += "  " + listing.Plain(e.Identity)
	}
	if e.Note != "" {
		line += " (" + listing.Plain(e.Note) + ")"
	}
	switch e.Kind {
	case rowlock.EventExpired:
		line += ": not renewed"
	case rowlock.EventLapsed:
		line += ": its MinHold is over, or its holder has died"
	}
	p.out.Line("%s", line)
	return p.out.Err
}
