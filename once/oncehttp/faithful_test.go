package oncehttp_test

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// A header may have bytes that are no UTF-8, as file names in Latin-1 do.
func TestHeadersAreReplayedByteForByte(t *testing.T) {
	s := onSQLite(t, nil)
	values := []string{"caf\xe9", "caf\xc3\xa9", "<&>\u2028", ""}
	s.answer = func(w http.ResponseWriter, _ *http.Request) { w.Header()["X-Raw"] = values }
	for _, replayed := range []bool{false, true} {
		r := s.post("key", "")
		s.want(r, 200, replayed)
		if got := r.Header.Values("X-Raw"); strings.Join(got, ",") != strings.Join(values, ",") {
			t.Errorf("replayed %t: got %q, want %q", replayed, got, values)
		}
	}
}

// What a handler around this one has said is not lost: its own cookie, and by what a cache is to
// tell answers apart.
func TestWhatIsAroundKeepsItsCookieAndVary(t *testing.T) {
	s := onSQLite(t, nil)
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "inner=1")
		w.Header().Add("Vary", "Accept")
		w.Header().Set("X-Both", "inner")
	}
	s.around = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Add("Set-Cookie", "outer=1")
		w.Header().Add("Vary", "Origin")
		w.Header().Set("X-Both", "outer")
		next.ServeHTTP(w, r)
	}
	for _, cookies := range []string{"outer=1 inner=1", "outer=1"} {
		r := s.post("key", "")
		for name, want := range map[string]string{"Set-Cookie": cookies, "Vary": "Origin Accept", "X-Both": "inner"} {
			if got := strings.Join(r.Header.Values(name), " "); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}

// Two handlers that are mounted with http.StripPrefix have the same URL inside, and are not the
// same request.
func TestWhatTheClientAskedForIsComparedAndNotWhatIsLeftOfIt(t *testing.T) {
	s := onSQLite(t, nil)
	s.around = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		http.StripPrefix("/"+strings.Split(r.URL.Path, "/")[1], next).ServeHTTP(w, r)
	}
	s.want(s.send("POST", "/books/orders", "key", ""), 201, false)
	s.wantProblem(s.send("POST", "/films/orders", "key", ""), 422)
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/books/orders", nil)
	s.ok(err)
	req.Header.Set("Idempotency-Key", "key")
	req.Header.Set("Content-Encoding", "gzip")
	s.wantProblem(s.do(req), 422)
	s.want(s.send("POST", "/books/orders", "key", ""), 201, true)
	s.wantDone(1, 1)
}

// A form's files are written to disk when they do not fit in memory, and the server removes only
// those of the request it made.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := onSQLite(t, &oncehttp.Config{MaxBody: 20 << 20})
	files := func() []os.DirEntry {
		entries, err := os.ReadDir(dir)
		s.ok(err)
		return entries
	}
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil || len(files()) == 0 {
			t.Errorf("%v, %d files", err, len(files()))
		}
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "name")
	s.ok(err)
	// More than a form may have in memory beside what was asked for.
	_, _ = part.Write(make([]byte, 12<<20))
	s.ok(form.Close())
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url, &body)
	s.ok(err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Idempotency-Key", "key")
	s.want(s.do(req), 200, false)
	if left := files(); len(left) > 0 {
		t.Errorf("%d files are left: %v", len(left), left)
	}
}

// net/http panics on a status that cannot be sent. It must not be kept first.
func TestAStatusThatCannotBeSentIsAPanic(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{Keep: func(int) bool { return true }})
	for _, status := range []int{-1, 0, 99, 1000} {
		s.mu.Lock()
		s.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
		s.mu.Unlock()
		// The client does not repeat such a request by itself.
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url, io.NopCloser(strings.NewReader("")))
		s.ok(err)
		req.Header.Set("Idempotency-Key", "key")
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			t.Errorf("%d was answered: %v", status, res.Status)
		}
	}
	s.mu.Lock()
	s.answer = created
	s.mu.Unlock()
	s.want(s.send("POST", "/", "key", ""), 201, false)
}

func TestNewNeedsAOnce(t *testing.T) {
	cfg := &oncehttp.Config{Tenant: oncehttp.SharedKeys}
	if h, err := oncehttp.New(nil, cfg); !errors.Is(err, lease.ErrConfig) || h != nil {
		t.Errorf("got %v, %v", h, err)
	}
}
