package oncehttp_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// form is a multipart form as its sender builds it anew for each repeat.
func form(t *testing.T, boundary string, fields ...string) (kind, body string) {
	t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	if boundary != "" {
		if err := m.SetBoundary(boundary); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		w, err := m.CreateFormFile(name, name+".txt")
		if err == nil {
			_, err = io.WriteString(w, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = m.Close()
	return m.FormDataContentType(), b.String()
}

func (s *site) upload(kind, body string) reply {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), "POST", s.url+"/upload", strings.NewReader(body))
	s.ok(err)
	req.Header.Set("Idempotency-Key", "key")
	req.Header.Set("Content-Type", kind)
	return s.do(req)
}

func TestAFormIsTheSameWithAnotherBoundary(t *testing.T) {
	each(t, func(s *site) {
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			file, _, err := r.FormFile("a")
			s.ok(err)
			text, _ := io.ReadAll(file)
			_, _ = fmt.Fprintf(w, "got %s", text)
		}
		s.want(s.upload(form(t, "", "a=one", "b=two")), 200, false)
		for _, boundary := range []string{"", "x", "with space and:colon", strings.Repeat("long", 17)} {
			again := s.upload(form(t, boundary, "a=one", "b=two"))
			s.want(again, 200, true)
			if again.body != "got one" {
				s.Errorf("got %q", again.body)
			}
		}
		s.wantProblem(s.upload(form(t, "", "a=other", "b=two")), 422)
		s.wantProblem(s.upload(form(t, "", "b=two", "a=one")), 422)
		s.wantProblem(s.upload(form(t, "", "a=one", "c=two")), 422)
		s.wantProblem(s.upload(form(t, "", "a=onea", "b=two")), 422)
		s.wantProblem(s.upload(form(t, "", "a=one", "b=two", "c=three")), 422)
		s.wantDone(1, 1)
	})
}

// nestedForm has files in a part that is a multipart body itself.
func nestedForm(t *testing.T, value string) (kind, body string) {
	t.Helper()
	inner, files := form(t, "", "a="+value)
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	w, err := m.CreatePart(textproto.MIMEHeader{
		"Content-Type":        {strings.Replace(inner, "form-data", "mixed", 1)},
		"Content-Disposition": {`form-data; name="files"`},
	})
	if err == nil {
		_, err = io.WriteString(w, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	return m.FormDataContentType(), b.String()
}

func fingerprintOf(kind, body string) string {
	r := request("POST", "/upload", kind, "")
	return string(oncehttp.FingerprintOf(r, []byte(body)))
}

func TestPartsWithinPartsHaveBoundariesToo(t *testing.T) {
	first, again := fingerprintOf(nestedForm(t, "one")), fingerprintOf(nestedForm(t, "one"))
	if first != again {
		t.Error("a nested form with another boundary is another request")
	}
	if first == fingerprintOf(nestedForm(t, "two")) {
		t.Error("nested forms with other contents are the same request")
	}
}

// What cannot be read as parts stays what it is, byte for byte.
func TestAFormThatIsBrokenIsComparedAsItIs(t *testing.T) {
	kind, body := form(t, "x", "a=one")
	cut := body[:len(body)-8]
	for _, other := range []string{cut, cut + "-", "", "--x", body + "", kind} {
		same := fingerprintOf(kind, other) == fingerprintOf(kind, cut)
		if same != (other == cut) {
			t.Errorf("%q and %q are the same: %t", other, cut, same)
		}
	}
	if fingerprintOf("multipart/form-data", body) == fingerprintOf(kind, body) {
		t.Error("a form without its boundary is the same request as one with it")
	}
}

func TestAnotherHostIsAnotherRequest(t *testing.T) {
	s := onSQLite(t, nil)
	send := func(host string) reply {
		req, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/orders", strings.NewReader("x"))
		s.ok(err)
		req.Host = host
		req.Header.Set("Idempotency-Key", "key")
		return s.do(req)
	}
	s.want(send("eu.example.com"), 201, false)
	s.want(send("EU.example.com"), 201, true)
	s.want(send("eu.example.com:8080"), 201, true)
	s.wantProblem(send("us.example.com"), 422)
	s.wantDone(1, 1)
}

func (s *site) accepting(key, codings string) reply {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), "POST", s.url+"/orders", nil)
	s.ok(err)
	req.Header.Set("Idempotency-Key", key)
	if codings != "" {
		req.Header.Set("Accept-Encoding", codings)
	}
	asked := &http.Transport{DisableCompression: true}
	defer asked.CloseIdleConnections()
	res, err := asked.RoundTrip(req)
	s.ok(err)
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	s.ok(err)
	return reply{res, string(got)}
}

func TestACompressedAnswerIsReplayedToClientsThatReadIt(t *testing.T) {
	each(t, func(s *site) {
		s.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("ETag", `"packed"`)
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "the answer")
			_ = z.Close()
		}
		first := s.accepting("key", "gzip")
		s.want(first, 200, false)
		for codings, packed := range map[string]bool{
			"gzip": true, "br, GZIP;q=0.5": true, "x-gzip": true, "*": true,
			"": false, "identity": false, "br": false, "gzip;q=0": false, "gzip;q=0.0, *": false,
		} {
			r := s.accepting("key", codings)
			s.want(r, 200, true)
			if is := r.Header.Get("Content-Encoding") == "gzip"; is != packed || packed && r.body != first.body ||
				!packed && (r.body != "the answer" || r.Header.Get("ETag") != `W/"packed"`) {
				s.Errorf("a client that accepts %q got %v: %q", codings, r.Header, r.body)
			}
			if r.Header.Get("Vary") != "Accept-Encoding" {
				s.Errorf("Vary is %q", r.Header.Values("Vary"))
			}
		}
		s.wantDone(1, 1)
	})
}

func TestACodingThatCannotBeUnpackedIs406(t *testing.T) {
	s := onSQLite(t, nil)
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "packed")
	}
	s.want(s.accepting("key", "br"), 200, false)
	s.wantProblem(s.accepting("key", "gzip"), 406)
	s.want(s.accepting("key", "gzip, br"), 200, true)
	s.wantDone(1, 1)
}

// Such requests would fill the table otherwise, a row for each.
func TestARefusalThatHasChangedNothingIsNotKept(t *testing.T) {
	each(t, func(s *site) {
		runs := 0
		s.around = func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			h, err := oncehttp.New(s.once, &oncehttp.Config{Tenant: oncehttp.SharedKeys})
			s.ok(err)
			h.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				runs++
				if r.URL.Path == "/asked" {
					_ = oncehttp.Tx(r.Context())
				}
				status := http.StatusNotFound
				if r.URL.Path == "/done" {
					status = http.StatusOK
				}
				w.WriteHeader(status)
			})).ServeHTTP(w, r)
		}
		for range 3 {
			s.want(s.send("POST", "/refused", "refused", ""), 404, false)
		}
		s.want(s.send("POST", "/done", "done", ""), 200, false)
		s.want(s.send("POST", "/done", "done", ""), 200, true)
		s.want(s.send("POST", "/asked", "asked", ""), 404, false)
		s.want(s.send("POST", "/asked", "asked", ""), 404, true)
		var rows int
		s.ok(s.env.DB.QueryRow(s.env.SQL(`SELECT COUNT(*) FROM {rowlock_once}`)).Scan(&rows))
		if runs != 5 || rows != 2 {
			s.Errorf("%d runs and %d rows, want 5 and 2", runs, rows)
		}
	})
}

func TestAnAccountThatHasTooManyAnswersIs429(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	o, err := once.New(e.DB, e.Dialect, &once.Config{Reap: -1, MostPerTenant: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	h, err := oncehttp.New(o, &oncehttp.Config{Tenant: func(r *http.Request) string { return r.Header.Get("X-Account") }})
	if err != nil {
		t.Fatal(err)
	}
	wrapped := h.Wrap(http.HandlerFunc(created))
	for _, c := range []struct {
		account, key string
		status       int
	}{{"a", "1", 201}, {"a", "2", 429}, {"a", "1", 201}, {"b", "1", 201}} {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader("x"))
		r.Header.Set("X-Account", c.account)
		r.Header.Set("Idempotency-Key", c.key)
		w := httptest.NewRecorder()
		wrapped.ServeHTTP(w, r)
		if w.Code != c.status || (w.Code == 429) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("key %s of %s: %d %v", c.key, c.account, w.Code, w.Header())
		}
	}
}
