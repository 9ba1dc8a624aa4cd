package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/demo"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/door"
	"github.com/rowlockdb/rowlock/cmd/rowlock/internal/target"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/keytext"
	"github.com/spf13/cobra"
)

func (p *program) console() *cobra.Command {
	var listen, by string
	var write, demonstrated bool
	c := &cobra.Command{
		Use:   "console",
		Short: "Serve a page that shows the locks, for a browser",
		Long: long(`
Serve a page that shows which keys are held, by whom and for how long, who waits, and which callers
wait for one another. It prints its address, which has a secret in it: whoever has the address can
look. It sends one statement a second in total; none without viewers.

It listens on 127.0.0.1 only. Another address makes it reachable from elsewhere, without encryption:
put a proxy with TLS before it, or use an SSH tunnel instead. With --write those who look can take
keys from their holders, as rowlock release --force does; the record has the name of --by.

With --demo it shows a made-up shop at work, in a SQLite file that is removed at the end.`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !demonstrated {
				return p.serve(c.Context(), listen, by, write)
			}
			return demo.Run(c.Context(), func(file string) error {
				p.settings = target.Settings{DSN: "sqlite:" + file}
				return p.serve(c.Context(), listen, by, true)
			})
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7380", "address and port; port 0 is any free one")
	c.Flags().BoolVar(&write, "write", false, "let those who look take keys from their holders")
	c.Flags().BoolVar(&demonstrated, "demo", false, "show a made-up shop instead of a database of yours")
	c.Flags().StringVar(&by, "by", operator(), "who looks, for records of forced releases")
	c.Flags().Lookup("by").DefValue = "USER@HOST"
	return c
}

// streams is how many pages refresh themselves at a time.
const streams = 500

func (p *program) serve(ctx context.Context, listen, by string, write bool) error {
	opening := ctx
	if !write {
		opening = adapter.Reading(ctx)
	}
	t, client, end, err := p.client(opening, func(c *rowlock.Config) { c.Reaper.Off = true })
	if err != nil {
		return err
	}
	defer end()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return usage("--listen %s: %s", listen, keytext.Error(err))
	}
	warns := slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d := door.New(cmp.Or(strings.TrimSpace(by), operator()), warns)
	h, err := console.Handler(client, console.Options{
		DB: t.DB, Dialect: t.Dialect, Write: write, Authorize: d.Viewer, Logger: warns,
		StreamsPerViewer: streams, Streams: streams, // who has the address has the one name of --by
		Timeline: timeline(client), Findings: findings(t),
	})
	if err != nil {
		_ = listener.Close()
		return err
	}
	if p.announce(listener.Addr().(*net.TCPAddr), d); p.out.Err != nil {
		_ = listener.Close() // no one can open what has no address
		return p.out.Err
	}
	server := &http.Server{
		Handler: d.Admit(h), ReadTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(p.logger().Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(h.Close)
	return serveUntil(ctx, listener, server)
}

// announce prints the address to open.
func (p *program) announce(at *net.TCPAddr, d *door.Door) {
	p.out.Line("http://%s%s", at, d.Address())
	if !at.IP.IsLoopback() {
		fmt.Fprintln(p.stderr, "rowlock: this page can be reached from other machines, and what it sends "+
			"is not encrypted")
	}
}

// serveUntil serves until ctx ends, and then ends what is open.
func serveUntil(ctx context.Context, l net.Listener, server *http.Server) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(ending)
	return server.Close() // a browser may keep a connection open on which it has asked nothing
}

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
