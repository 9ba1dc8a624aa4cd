package console_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/console"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/memstore"
)

// asks returns the answer to a request for a stream, which goes on until the test ends.
func (b *bed) asks(client *http.Client, url string) *http.Response {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	b.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func TestStreamsAreBounded(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) { o.Streams = 2 })
	first := b.stream("page=held")
	first.until("view", "No key is held")
	b.stream("page=waits").until("view", "No key is waited for")
	answer := b.asks(b.server.Client(), b.server.URL+"/locks/events?page=held")
	if _, text := b.body(answer); answer.StatusCode != http.StatusServiceUnavailable ||
		answer.Header.Get("Retry-After") == "" || !strings.Contains(text, "2 pages refresh themselves") {
		t.Errorf("a third stream is answered with %d: %s", answer.StatusCode, text)
	}
	b.wants("", "No key is held") // a page is shown all the same
	first.close()
	for end := time.Now().Add(30 * time.Second); ; { // the server learns of it
		answer := b.asks(b.server.Client(), b.server.URL+"/locks/events?page=held")
		if answer.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a stream that has ended is counted")
		}
	}
}

// One viewer leaves room for others.
func TestStreamsOfOneViewerAreBounded(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), func(o *console.Options) {
		o.StreamsPerViewer = 2
		o.Authorize = func(r *http.Request) (string, error) { return r.URL.Query().Get("who"), nil }
	})
	const ada = "page=held&who=ada"
	first := b.stream(ada)
	b.stream(ada).until("view", "No key is held")
	answer := b.asks(b.server.Client(), b.server.URL+"/locks/events?"+ada)
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("a third stream is answered with %d", answer.StatusCode)
	}
	if _, text := b.body(answer); answer.Header.Get("Retry-After") == "" ||
		!strings.Contains(text, "2 pages of ada refresh") {
		t.Errorf("a third stream is answered with %d: %s", answer.StatusCode, text)
	}
	b.stream("page=held&who=bob").until("view", "No key is held")
	first.close()
	for end := time.Now().Add(30 * time.Second); ; { // the server learns of it
		answer := b.asks(b.server.Client(), b.server.URL+"/locks/events?"+ada)
		if answer.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a stream that has ended is counted")
		}
	}
}

// Views of a store that is no database send no statement, and have their turns all the same.
func TestViewsWithoutStatementsTakeTurns(t *testing.T) {
	for _, page := range []string{"waits", "cycles"} {
		synctest.Test(t, func(t *testing.T) {
			w := &slowWriter{header: http.Header{}, wrote: make(chan string)}
			h := memoryConsole(t, time.Second)
			ended := servesPage(t, h, w, page)
			began, views := time.Now(), 0
			for views < 25 && time.Since(began) < 20*time.Second {
				views += strings.Count(<-w.wrote, "event: view\n")
			}
			if views < 15 || views > 22 {
				t.Errorf("a viewer of %s gets %d views in %s, want one each second", page, views,
					time.Since(began))
			}
			h.Close()
			for open := true; open; {
				select {
				case <-w.wrote:
				case <-ended:
					open = false
				}
			}
		})
	}
}

func TestShutdownEndsStreams(t *testing.T) {
	client, err := rowlock.New(memstore.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	h, err := console.Handler(client, console.Options{
		Authorize: func(*http.Request) (string, error) { return "ada", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	server.Config.RegisterOnShutdown(h.Close)
	b := &bed{TB: t}
	stream := b.asks(server.Client(), server.URL+"/events?page=held")
	if err := server.Config.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/events?page=held", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a stream is begun after Close: %d", w.Code)
	}
	h.Close()
}

// slowWriter is a connection whose other end reads when the test does.
type slowWriter struct {
	header http.Header
	wrote  chan string
	mu     sync.Mutex
	late   time.Time
}

func (w *slowWriter) Header() http.Header { return w.header }
func (w *slowWriter) WriteHeader(int)     {}
func (w *slowWriter) Flush()              {}

func (w *slowWriter) SetWriteDeadline(late time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = late
	return nil
}

func (w *slowWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	late := time.NewTimer(time.Until(w.late))
	w.mu.Unlock()
	defer late.Stop()
	select {
	case w.wrote <- string(text):
		return len(text), nil
	case <-late.C:
		return 0, context.DeadlineExceeded
	}
}

// inMemory serves a stream of a console of a store in memory to w, and closes ended.
func inMemory(t *testing.T, w http.ResponseWriter, every time.Duration) (ended chan struct{}) {
	t.Helper()
	return serves(t, memoryConsole(t, every), w)
}

func memoryConsole(t *testing.T, every time.Duration) *console.Console {
	t.Helper()
	client, err := rowlock.New(memstore.New(), &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	h, err := console.Handler(client, console.Options{
		Every: every, Authorize: func(*http.Request) (string, error) { return "ada", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func serves(t *testing.T, h http.Handler, w http.ResponseWriter) (ended chan struct{}) {
	t.Helper()
	return servesPage(t, h, w, "held")
}

func servesPage(
	t *testing.T, h http.Handler, w http.ResponseWriter, page string,
) (ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/events?page="+page, nil))
	}()
	return ended
}

func TestAStreamHasABeatAndAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{header: http.Header{}, wrote: make(chan string)}
		ended, began := inMemory(t, w, time.Hour), time.Now()
		beats := 0
		for open := true; open; {
			select {
			case text := <-w.wrote:
				if text == ": beat\n\n" {
					beats++
				}
			case <-ended:
				open = false
			}
		}
		if took := time.Since(began); took != 5*time.Minute || beats < 19 {
			t.Errorf("a stream lasts %s and has %d beats, want 5 m and 19 or 20", took, beats)
		}
		if h := w.header; h.Get("X-Accel-Buffering") != "no" ||
			!strings.Contains(h.Get("Cache-Control"), "no-transform") {
			t.Errorf("the headers are %v", h)
		}
	})
}

func TestAViewerThatNeverReadsIsLeftAndHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := memoryConsole(t, time.Second)
		stuck := &slowWriter{header: http.Header{}, wrote: make(chan string)}
		reads := &slowWriter{header: http.Header{}, wrote: make(chan string)}
		began := time.Now()
		ended := serves(t, h, stuck)
		other := serves(t, h, reads)
		for views := 0; views < 20; {
			if strings.HasPrefix(<-reads.wrote, "event: view\n") {
				views++
			}
		}
		if took := time.Since(began); took > 21*time.Second {
			t.Errorf("20 views take the other viewer %s", took)
		}
		select {
		case <-ended:
		default:
			t.Error("the stream that is not read goes on after 20 s")
		}
		for open := true; open; {
			select {
			case <-reads.wrote:
			case <-other:
				open = false
			}
		}
	})
}

// unflushed is what a middleware without Unwrap passes on.
type unflushed struct{ http.ResponseWriter }

func TestAServerThatCannotFlushIsSaid(t *testing.T) {
	w := httptest.NewRecorder()
	<-inMemory(t, unflushed{w}, time.Second)
	if w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), "cannot send streams") {
		t.Errorf("the answer is %d: %s", w.Code, w.Body)
	}
}

func TestStreamsGoOverHTTP2(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t), nil)
	server := httptest.NewUnstartedServer(b.server.Config.Handler)
	server.EnableHTTP2 = true
	server.Config.ReadTimeout = 300 * time.Millisecond // which no stream heeds
	server.Config.WriteTimeout = 300 * time.Millisecond
	server.StartTLS()
	defer server.Close()
	trust := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trust.NextProtos = nil
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	defer old.CloseIdleConnections()
	for version, client := range map[int]*http.Client{1: old, 2: server.Client()} {
		answer := b.asks(client, server.URL+"/locks/events?page=held")
		if answer.ProtoMajor != version {
			t.Fatalf("the answer is %s", answer.Proto)
		}
		s := &stream{bed: b, answer: answer, lines: bufio.NewScanner(answer.Body)}
		for began := time.Now(); time.Since(began) < time.Second; {
			s.until("view", "No key is held")
		}
		s.close()
	}
}
