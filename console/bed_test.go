package console_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/race/bubbles"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) { bubbles.Main(m) }

// bed is a console on a database, with a client that holds locks.
type bed struct {
	testing.TB
	*testdb.Env
	client *rowlock.Client
	server *httptest.Server
}

// newBed has the console of a client. change may be nil.
func newBed(tb testing.TB, e *testdb.Env, change func(*console.Options)) *bed {
	tb.Helper()
	client, err := rowlock.Open(e.Pool(tb), e.Dialect, &rowlock.Config{Identity: "web-1/4711/orders"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	b := &bed{TB: tb, Env: e, client: client}
	b.serve(client, change)
	return b
}

func (b *bed) serve(client *rowlock.Client, change func(*console.Options)) {
	b.Helper()
	o := console.Options{
		DB: b.DB, Dialect: b.Dialect, Every: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Authorize: func(*http.Request) (string, error) { return "ada", nil },
	}
	if change != nil {
		change(&o)
	}
	h, err := console.Handler(client, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(h.Close)
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", h))
	b.server = httptest.NewServer(mux)
	b.Cleanup(b.server.Close)
	b.Cleanup(b.server.CloseClientConnections)
}

func (b *bed) lock(key string, opts ...rowlock.Option) *rowlock.Lock {
	b.Helper()
	l, err := b.client.Lock(b.Context(), key, opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.keep(l)
	return l
}

// another is a client of another process.
func (b *bed) another(identity string) *rowlock.Client {
	b.Helper()
	client, err := rowlock.Open(b.Pool(b), b.Dialect, &rowlock.Config{Identity: identity})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return client
}

// keep keeps a handle from becoming garbage, which would release its lock.
func (b *bed) keep(handle any) { b.Cleanup(func() { runtime.KeepAlive(handle) }) }

// get returns a page.
func (b *bed) get(path string) (int, string) {
	b.Helper()
	answer, err := b.server.Client().Get(b.server.URL + "/locks/" + path)
	if err != nil {
		b.Fatal(err)
	}
	return b.body(answer)
}

func (b *bed) body(answer *http.Response) (int, string) {
	b.Helper()
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// wants fails the test unless a page has all of these texts.
func (b *bed) wants(path string, texts ...string) string {
	b.Helper()
	code, page := b.get(path)
	if code != http.StatusOK {
		b.Fatalf("%s is answered with %d: %s", path, code, page)
	}
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.Errorf("%s has no %q:\n%s", path, text, page)
		}
	}
	return page
}

// becomes waits until a page can be shown, and has a text.
func (b *bed) becomes(path, text string) {
	b.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		code, page := b.get(path)
		if code == http.StatusOK && strings.Contains(page, text) {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s is still answered with %d: %s", path, code, page)
		}
	}
}

// post sends a form as a browser does from an origin; "" sends none.
func (b *bed) post(origin string, form url.Values) (int, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.server.URL+"/locks/release",
		strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	answer, err := b.server.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	return b.body(answer)
}

// stream is a viewer's stream of events.
type stream struct {
	*bed
	answer *http.Response
	lines  *bufio.Scanner
}

func (b *bed) stream(query string) *stream {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	b.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+"/locks/events?"+query, nil)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := b.server.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		b.Fatalf("events?%s is answered with %d", query, answer.StatusCode)
	}
	s := &stream{bed: b, answer: answer, lines: bufio.NewScanner(answer.Body)}
	s.lines.Buffer(nil, 1<<20)
	b.Cleanup(s.close)
	return s
}

func (s *stream) close() { _ = s.answer.Body.Close() }

// until reads events until one of a kind has a text, and returns its data.
func (s *stream) until(kind, text string) string {
	s.Helper()
	var event, data string
	for s.lines.Scan() {
		line := s.lines.Text()
		switch {
		case line == "":
			if event == kind && strings.Contains(data, text) {
				return data
			}
			event, data = "", ""
		case strings.HasPrefix(line, "event: "):
			event = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data += strings.TrimPrefix(line, "data: ") + "\n"
		}
	}
	s.Fatalf("the stream ended before %s with %q: %v", kind, text, s.lines.Err())
	return ""
}

var errRefused = errors.New("no session")

func each(t *testing.T, f func(b *bed)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f(newBed(t, e, func(o *console.Options) { o.Write = true }))
	})
}
