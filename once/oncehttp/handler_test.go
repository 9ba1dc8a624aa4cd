package oncehttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// site is a server whose handler writes an effect and answers as its test has it.
type site struct {
	*testing.T
	env    *testdb.Env
	once   *once.Once
	url    string
	runs   atomic.Int64
	answer http.HandlerFunc
	mu     sync.Mutex // for answer while a handler may be at work
	around func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

func newSite(t *testing.T, e *testdb.Env, cfg *oncehttp.Config) *site {
	t.Helper()
	s := &site{T: t, env: e}
	e.Exec(t, `CREATE TABLE `+s.effects()+` (name VARCHAR(100) NOT NULL)`)
	t.Cleanup(func() { e.Exec(t, `DROP TABLE `+s.effects()) })
	return s.serve(cfg)
}

// beside is another process's server on the same database.
func (s *site) beside(e *testdb.Env) *site {
	s.Helper()
	return (&site{T: s.T, env: e}).serve(nil)
}

func (s *site) serve(cfg *oncehttp.Config) *site {
	s.Helper()
	t, e := s.T, s.env
	o, err := once.New(e.DB, e.Dialect, &once.Config{Wait: 200 * time.Millisecond, MaxResult: 10_000, Reap: -1})
	s.ok(err)
	t.Cleanup(func() { _ = o.Close() })
	s.once, s.answer = o, created
	if cfg == nil {
		cfg = &oncehttp.Config{}
	}
	if cfg.Tenant == nil {
		cfg.Tenant = oncehttp.SharedKeys
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	h, err := oncehttp.New(o, cfg)
	s.ok(err)
	s.around = func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) }
	wrapped := h.Wrap(http.HandlerFunc(s.handle))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.around(w, r, wrapped) }))
	// For handlers that panic.
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s.url = server.URL
	return s
}

func (s *site) effects() string { return s.env.Dialect.Names().Prefix + "effects" }

func (s *site) handle(w http.ResponseWriter, r *http.Request) {
	s.runs.Add(1)
	if tx := oncehttp.Tx(r.Context()); tx != nil {
		_, err := tx.ExecContext(r.Context(), s.env.SQL(`INSERT INTO `+s.effects()+` (name) VALUES (?)`), "e")
		if err != nil {
			s.Error(err)
		}
	}
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	answer(w, r)
}

func created(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Location", "/orders/1")
	w.Header().Add("X-Many", "1")
	w.Header().Add("X-Many", "2")
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, "made of %s", body)
}

func (s *site) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// reply is what the client got.
type reply struct {
	*http.Response
	body string
}

func (s *site) post(key, body string) reply {
	s.Helper()
	return s.send("POST", "/orders?a=1", key, body)
}

func (s *site) send(method, path, key, body string) reply {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	s.ok(err)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return s.do(req)
}

func (s *site) do(req *http.Request) reply {
	s.Helper()
	res, err := http.DefaultClient.Do(req)
	s.ok(err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	s.ok(err)
	return reply{res, string(got)}
}

func (s *site) want(r reply, status int, replayed bool) {
	s.Helper()
	if got := r.Header.Get("Idempotent-Replayed") == "true"; r.StatusCode != status || got != replayed {
		s.Errorf("got %d, replayed %t: %s; want %d, %t", r.StatusCode, got, r.body, status, replayed)
	}
	if r.Header.Get("Retry-After") != "" && r.StatusCode != 409 && r.StatusCode != 503 {
		s.Errorf("%d with Retry-After", r.StatusCode)
	}
}

// wantProblem wants an error of the middleware's own.
func (s *site) wantProblem(r reply, status int) {
	s.Helper()
	s.want(r, status, false)
	if r.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(r.body, fmt.Sprintf(`"status":%d`, status)) {
		s.Errorf("got %v: %s", r.Header, r.body)
	}
	if (status == 409 || status == 503) && r.Header.Get("Retry-After") == "" {
		s.Error("no Retry-After")
	}
}

func (s *site) wantDone(runs, effects int) {
	s.Helper()
	var n int
	s.ok(s.env.DB.QueryRow(`SELECT COUNT(*) FROM ` + s.effects()).Scan(&n))
	if int(s.runs.Load()) != runs || n != effects {
		s.Errorf("%d runs and %d effects, want %d and %d", s.runs.Load(), n, runs, effects)
	}
}

func each(t *testing.T, f func(s *site)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) { f(newSite(t, e, nil)) })
}

// onSQLite is for what has nothing to do with the database.
func onSQLite(t *testing.T, cfg *oncehttp.Config) *site {
	t.Helper()
	return newSite(t, testdb.Kinds[0].Open(t), cfg)
}

func TestARepeatGetsTheSameAnswer(t *testing.T) {
	each(t, func(s *site) {
		first := s.post("key", "body")
		s.want(first, 201, false)
		for _, key := range []string{"key", `"key"`, ` "key" `, `"key";a=1`} {
			again := s.post(key, "body")
			s.want(again, 201, true)
			if again.body != "made of body" || again.body != first.body {
				s.Errorf("got %q after %q", again.body, first.body)
			}
			for _, name := range []string{"Location", "X-Many", "Content-Type", "Content-Length"} {
				if got, want := fmt.Sprint(again.Header.Values(name)), fmt.Sprint(first.Header.Values(name)); got != want || got == "[]" {
					s.Errorf("%s: got %s after %s", name, got, want)
				}
			}
		}
		s.wantDone(1, 1)
	})
}

func TestSessionsAndConnectionsAreNotReplayed(t *testing.T) {
	s := onSQLite(t, nil)
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["set-cookie"] = []string{"raw=1"} // as http.SetCookie would never spell it
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
		h.Set("Date", "Sat, 01 Jan 2000 00:00:00 GMT")
		h.Set("Connection", "X-Hop")
		h.Set("X-Hop", "1")
		h.Set("Keep-Alive", "timeout=5")
		h.Set(http.TrailerPrefix+"X-Late", "1")
		h.Set("X-Kept", "1")
		_, _ = w.Write(nil)
	}
	first := s.post("key", "")
	if first.Header.Get("Set-Cookie") == "" {
		s.Error("the first answer has no cookie")
	}
	again := s.post("key", "")
	s.want(again, 200, true)
	for _, name := range []string{"Set-Cookie", "X-Hop", "Keep-Alive", "X-Late", http.TrailerPrefix + "X-Late"} {
		if got := again.Header.Values(name); len(got) > 0 || len(again.Trailer) > 0 {
			s.Errorf("%s: %q was replayed", name, got)
		}
	}
	if again.Header.Get("X-Kept") != "1" || strings.Contains(again.Header.Get("Date"), "2000") {
		s.Errorf("got %v", again.Header)
	}
	var stored []byte
	s.ok(s.env.DB.QueryRow(s.env.SQL(`SELECT result FROM {rowlock_once}`)).Scan(&stored))
	if bytes.Contains(stored, []byte("secret")) || bytes.Contains(stored, []byte("raw=1")) {
		s.Errorf("a cookie is stored: %s", stored)
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	s := onSQLite(t, nil)
	for _, key := range []string{"", "a b", `"open`, `"a" b`, `a,b`, strings.Repeat("k", 256), `""`, `"\a"`} {
		s.wantProblem(s.post(key, ""), 400)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.url, nil)
	s.ok(err)
	req.Header["Idempotency-Key"] = []string{"a", "b"}
	s.wantProblem(s.do(req), 400)
	s.wantDone(0, 0)
}

func TestWithoutAKeyIfThatIsAllowed(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{Optional: true})
	for range 2 {
		s.want(s.post("", "body"), 201, false)
	}
	s.wantProblem(s.post("a b", "body"), 400)
	s.wantDone(2, 0)
}

func TestAnotherRequestUnderTheKeyIs422(t *testing.T) {
	each(t, func(s *site) {
		s.want(s.post("key", "body"), 201, false)
		s.wantProblem(s.post("key", "other"), 422)
		s.wantProblem(s.send("PUT", "/orders?a=1", "key", "body"), 422)
		s.wantProblem(s.send("POST", "/orders?a=2", "key", "body"), 422)
		s.wantProblem(s.send("POST", "/other?a=1", "key", "body"), 422)
		s.wantDone(1, 1)
	})
}

// The first waits in its handler while a repeat comes.
func TestOneInFlightIs409(t *testing.T) {
	each(t, func(s *site) {
		inside, finish := make(chan struct{}), make(chan struct{})
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			close(inside)
			<-finish
			created(w, r)
		}
		var wg sync.WaitGroup
		wg.Go(func() { s.want(s.post("key", "body"), 201, false) })
		<-inside
		s.wantProblem(s.post("key", "body"), 409)
		s.wantProblem(s.post("key", "other"), 422)
		close(finish)
		wg.Wait()
		s.want(s.post("key", "body"), 201, true)
		s.wantDone(1, 1)
	})
}

func TestWhatFailsIsRolledBackAndRunAgain(t *testing.T) {
	each(t, func(s *site) {
		for n, status := range []int{500, 503, 599, 429, 401} {
			s.answer = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) }
			r := s.post("key", "")
			s.want(r, status, false)
			if r.body != "no\n" {
				s.Errorf("got %q", r.body)
			}
			s.wantDone(n+1, 0)
		}
		s.mu.Lock()
		s.answer = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		s.mu.Unlock()
		req, _ := http.NewRequestWithContext(s.Context(), "POST", s.url+"/orders?a=1", nil)
		req.Header.Set("Idempotency-Key", "key")
		// On a connection that it used before, Go's client repeats by itself what has an Idempotency-Key
		// and broke off.
		fresh := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if res, err := fresh.Do(req); err == nil {
			_ = res.Body.Close()
			s.Errorf("a panic was answered: %v", res)
		}
		s.mu.Lock()
		s.answer = created
		s.mu.Unlock()
		s.want(s.post("key", ""), 201, false)
		s.want(s.post("key", ""), 201, true)
		s.wantDone(7, 1)
	})
}

func TestARefusalIsKept(t *testing.T) {
	each(t, func(s *site) {
		s.answer = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such thing", 404) }
		s.want(s.post("key", ""), 404, false)
		again := s.post("key", "")
		s.want(again, 404, true)
		if again.body != "no such thing\n" {
			s.Errorf("got %q", again.body)
		}
		s.wantDone(1, 1)
	})
}

// On Postgres the transaction is lost with the statement that failed. The handler's answer is not.
func TestARefusalAfterAFailedStatement(t *testing.T) {
	each(t, func(s *site) {
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			if _, err := oncehttp.Tx(r.Context()).ExecContext(r.Context(), `INSERT INTO `+s.effects()+` (name) VALUES (NULL)`); err == nil {
				s.Error("no error")
			}
			http.Error(w, "taken", http.StatusConflict)
		}
		for range 2 {
			if r := s.post("key", ""); r.StatusCode != 409 || r.body != "taken\n" {
				s.Errorf("got %d %q", r.StatusCode, r.body)
			}
		}
	})
}

func TestBodiesThatAreTooLarge(t *testing.T) {
	each(t, func(s *site) {
		s.wantProblem(s.post("key", strings.Repeat("b", 1<<20+1)), 413)
		s.wantDone(0, 0)
		for _, size := range []int{10_001, 9_000} { // the second is too large as it is stored
			s.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }
			s.wantProblem(s.post("key", ""), 500)
		}
		s.wantDone(2, 0)
		s.answer = created
		s.want(s.post("key", ""), 201, false)
	})
}

// A client that goes away while the handler works finds the answer when it comes back.
func TestWhatAClientLeftIsFinished(t *testing.T) {
	each(t, func(s *site) {
		inside, gone, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			close(inside)
			<-gone
			if r.Context().Err() != nil {
				s.Errorf("the handler's context has ended: %v", r.Context().Err())
			}
			created(w, r)
			close(finished)
		}
		ctx, leave := context.WithCancel(s.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, "POST", s.url+"/orders?a=1", strings.NewReader("body"))
			req.Header.Set("Idempotency-Key", "key")
			if res, err := http.DefaultClient.Do(req); err == nil {
				_ = res.Body.Close()
				s.Error("the client did not leave")
			}
		})
		<-inside
		leave()
		wg.Wait()
		close(gone)
		<-finished
		s.want(s.post("key", "body"), 201, true)
		s.wantDone(1, 1)
	})
}

func TestAStoredResponseOfAnotherMakeIs500(t *testing.T) {
	s := onSQLite(t, nil)
	s.want(s.post("key", ""), 201, false)
	s.env.Exec(t, `UPDATE {rowlock_once} SET result = ?`, []byte("\x02{}"))
	s.wantProblem(s.post("key", ""), 500)
	s.wantDone(1, 1)
}

// A commit whose answer is lost is found; a database that is gone is 503.
func TestALostCommitIsAnswered(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		var gone atomic.Bool
		lost := faultdb.OnKind(faultdb.Nth(1, faultdb.LoseReply()), faultdb.Commit)
		dead := faultdb.Func(func(op faultdb.Op) faultdb.Fault {
			if gone.Load() {
				return faultdb.FailBeforeSend()
			}
			return faultdb.None
		})
		db, err := faultdb.Open(e.Driver, e.Source, faultdb.Any(dead, lost))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		broken := *e
		broken.DB = db
		s := newSite(t, &broken, nil)
		broken.DB = e.DB
		s.post("key", "")
		s.want(s.post("key", ""), 201, true)
		s.wantDone(1, 1)
		gone.Store(true)
		s.wantProblem(s.post("key", ""), 503)
		s.wantProblem(s.post("other", ""), 503)
	})
}
