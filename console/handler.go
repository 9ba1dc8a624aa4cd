package console

import (
	"context"
	"embed"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/shown"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

//go:embed web
var web embed.FS

// Console is an http.Handler. Its methods are safe for concurrent use.
type Console struct {
	client  *rowlock.Client
	tables  *shown.Tables // nil without a database
	o       Options
	csrf    *http.CrossOriginProtection
	feed    *feed
	asker   *asker
	routes  http.Handler
	seats   *seats
	closing func() // closes closed, once
	closed  chan struct{}
}

// Handler returns the console of a client's keys: those of a namespace if it is one. Mount it at a
// path that ends in a slash, with http.StripPrefix. A minute after its last viewer has left it has
// no background of its own.
//
// Pages that refresh themselves have a response that stays open. It ends after 5 minutes, and the
// browser then asks for a new one. http.Server.Shutdown waits for open responses: give it Close by
// http.Server.RegisterOnShutdown.
//
// Its error wraps [lease.ErrConfig].
func Handler(client *rowlock.Client, o Options) (*Console, error) {
	o, err := o.check(client)
	if err != nil {
		return nil, err
	}
	c := &Console{
		client: client, o: o, csrf: http.NewCrossOriginProtection(),
		seats: &seats{all: o.Streams, each: o.StreamsPerViewer, of: make(map[string]int)}, closed: make(chan struct{}),
		asker: &asker{o: o, space: client.KeyPrefix()},
	}
	c.closing = sync.OnceFunc(func() { close(c.closed) })
	for _, origin := range o.TrustedOrigins {
		if err := c.csrf.AddTrustedOrigin(origin); err != nil {
			return nil, bad("Options.TrustedOrigins: %v", err)
		}
	}
	if !isnil.Value(o.DB) {
		d := sqlstore.Of(o.Dialect)
		if err := d.CheckNames(); err != nil {
			return nil, err
		}
		c.tables = shown.Of(o.DB, d, client.KeyPrefix())
	}
	c.feed = newFeed(o.Every, c.read)
	c.routes = c.guard(c.mux())
	return c, nil
}

// ServeHTTP serves a page.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.routes.ServeHTTP(w, r) }

// Close ends the responses that refresh pages, and refuses new ones. Pages can be opened as before.
// Call it before http.Server.Shutdown, or by RegisterOnShutdown. It may be called more than once.
func (c *Console) Close() {
	c.closing()
	c.asker.close()
}

// mux has every path one level deep, so that links are relative wherever it is mounted.
func (c *Console) mux() http.Handler {
	mux := http.NewServeMux()
	for path, name := range map[string]string{
		"/{$}": pageHeld, "/waits": pageWaits, "/cycles": pageCycles, "/records": pageRecords,
		"/key": pageKey, "/process": pageProcess,
	} {
		mux.Handle("GET "+path, c.show(name))
	}
	if c.o.Findings != nil {
		mux.Handle("GET /findings", c.show(pageFindings))
	}
	mux.HandleFunc("GET /events", c.stream)
	mux.HandleFunc("POST /release", c.release)
	for _, name := range []string{"style.css", "console.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, web, "web/"+name)
		})
	}
	return clean(mux)
}

// clean refuses a path that http.ServeMux would redirect to its shortest form: that is absolute,
// and leads out of the path where the console is mounted.
func clean(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean("/"+r.URL.Path) != r.URL.Path {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// policy lets a page load its own style, script and stream, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

type viewerKey struct{}

// guard refuses whom Options.Authorize does not name.
func (c *Console) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if err := c.csrf.Check(r); err != nil {
			c.refuse(w, r, "this form was sent from another site", err)
			return
		}
		who, err := c.o.Authorize(r)
		if err != nil || strings.TrimSpace(who) == "" {
			c.refuse(w, r, "you are not allowed to see this", err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), viewerKey{}, who)))
	})
}

func viewer(r *http.Request) string {
	who, _ := r.Context().Value(viewerKey{}).(string)
	return who
}

func (c *Console) refuse(w http.ResponseWriter, r *http.Request, text string, err error) {
	c.o.Logger.LogAttrs(r.Context(), slog.LevelWarn, "rowlock: console: request refused",
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.String("from", r.RemoteAddr), slog.Any("error", err))
	http.Error(w, "rowlock: "+text, http.StatusForbidden)
}
