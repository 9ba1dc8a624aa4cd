package console

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Options configure a console.
type Options struct {
	// Authorize returns the name of the viewer who sends a request, or an error to refuse it. It
	// is called for each request, and every 5 minutes for a page that refreshes itself. The name
	// stands in the records of forced releases: 1 to 128 bytes of UTF-8. A POST takes a key from
	// its holder: refuse it to those who may only look. The viewer does not see the error's text;
	// the log has it. It is required, and must be safe for concurrent use.
	Authorize func(r *http.Request) (who string, err error)
	// Write lets viewers take keys from their holders. The default is to show only.
	Write bool
	// DB and Dialect are the database of the client's tables, as given to rowlock.Open. Pages are
	// then sorted and paged by the database, and show waiters and cycles. Leave out both for a
	// store that is not a database, such as memstore: the console then shows what Client.Inspect
	// lists.
	DB      dialect.DB
	Dialect dialect.Dialect
	// Timeline lists what has happened to a key, the latest first; a page shows some hundred. nil
	// leaves that part of a key's page out. key is without the client's KeyPrefix. It should send one
	// statement at most, because an open page calls it in its turn; it has 5 s.
	Timeline func(ctx context.Context, key string) ([]Event, error)
	// Findings lists what a check of the database's settings has found, the worst first. nil leaves
	// the page out. It is called when a viewer opens the page, not again within 30 s, and has 30 s.
	Findings func(ctx context.Context) ([]Finding, error)
	// Streams is how many viewers have pages that refresh themselves; more are told to come again.
	// The default is 500.
	Streams int
	// StreamsPerViewer is how many of them may have the same viewer's name, so that one viewer leaves
	// room for others. The default is 50. Raise it if Authorize has one name for all viewers.
	StreamsPerViewer int
	// Every is the time between two statements for all viewers. The default is 1 s, and the least
	// 10 ms.
	Every time.Duration
	// TrustedOrigins are other origins, such as "https://ops.example.com", whose forms are
	// accepted.
	TrustedOrigins []string
	// Logger reports refused requests and forced releases. The default is slog.Default().
	Logger *slog.Logger
}

// Event is what has happened to a key.
type Event struct {
	At time.Time
	// Kind is a word or a few, such as "granted" or "expired".
	Kind string
	// Token is that of the lease, or 0 if it is not known.
	Token lease.Token
	// Identity and Note are the holder's, and Detail what else is known. Any bytes do.
	Identity, Note, Detail string
}

// Finding is what a check of the database has found.
type Finding struct {
	// Severity is "ok", "info", "warning" or "critical".
	Severity string
	// Summary is a sentence. Evidence and Cure are lines of text, shown as they are.
	Summary        string
	Evidence, Cure []string
}

// What Options admits without Streams and StreamsPerViewer.
const (
	defaultStreams          = 500
	defaultStreamsPerViewer = 50
)

// check returns the options with their defaults, or what is wrong with them.
func (o Options) check(client *rowlock.Client) (Options, error) {
	switch {
	case client == nil:
		return o, bad("the client is nil")
	case o.Authorize == nil:
		return o, bad("Options.Authorize is nil: return the viewer's name, or an error to refuse")
	case isnil.Value(o.DB) != isnil.Value(o.Dialect):
		return o, bad("give both Options.DB and Options.Dialect, or neither")
	case o.Every != 0 && o.Every < 10*time.Millisecond:
		return o, bad("Options.Every is %s; the least is 10 ms", o.Every)
	case o.Streams < 0:
		return o, bad("Options.Streams is %d; 0 is the default of %d", o.Streams, defaultStreams)
	case o.StreamsPerViewer < 0:
		return o, bad("Options.StreamsPerViewer is %d; 0 is the default of %d", o.StreamsPerViewer,
			defaultStreamsPerViewer)
	}
	o.Every, o.Streams = cmp.Or(o.Every, time.Second), cmp.Or(o.Streams, defaultStreams)
	o.StreamsPerViewer = cmp.Or(o.StreamsPerViewer, defaultStreamsPerViewer)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: console.Handler: "+format, append([]any{lease.ErrConfig}, args...)...)
}
