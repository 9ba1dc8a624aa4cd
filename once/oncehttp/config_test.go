package oncehttp_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

// What is about the moment is not kept, and what is about the request is.
func TestWhichStatusesAreKept(t *testing.T) {
	s := onSQLite(t, nil)
	for status, kept := range map[int]bool{
		200: true, 204: true, 303: true, 400: true, 403: true, 404: true, 409: true, 422: true,
		401: false, 407: false, 408: false, 425: false, 429: false, 500: false,
	} {
		s.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
		s.want(s.post(fmt.Sprint(status), ""), status, false)
		s.want(s.post(fmt.Sprint(status), ""), status, kept)
	}
}

func TestWhatIsKeptIsTheConfigsToSay(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{Keep: func(status int) bool { return status == 500 }})
	for n, c := range []struct {
		status int
		kept   bool
	}{{201, false}, {500, true}} {
		s.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }
		s.want(s.post("key", ""), c.status, false)
		s.wantDone(n+1, n)
	}
	s.want(s.post("key", ""), 500, true)
}

func TestAHandlersContextEndsWhenItIsToFinish(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{Finish: time.Second})
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
			t.Error("it goes on")
		}
		w.WriteHeader(http.StatusInternalServerError)
	}
	s.want(s.post("key", ""), 500, false)
	s.wantDone(1, 0)
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	s := onSQLite(t, nil)
	for _, cfg := range []oncehttp.Config{{MaxBody: -1}, {Finish: -1}} {
		cfg.Tenant = oncehttp.SharedKeys
		if h, err := oncehttp.New(s.once, &cfg); !errors.Is(err, lease.ErrConfig) || h != nil {
			t.Errorf("got %v, %v", h, err)
		}
	}
}

func TestABodyAsLargeAsIsAllowed(t *testing.T) {
	s := onSQLite(t, &oncehttp.Config{MaxBody: 5})
	s.answer = func(w http.ResponseWriter, _ *http.Request) {}
	s.want(s.post("key", "12345"), 200, false)
	s.wantProblem(s.post("key", "123456"), 413)
}

// Half a request is not another request, and not done.
func TestABodyThatDidNotArriveIs400(t *testing.T) {
	s := onSQLite(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	s.ok(err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: key\r\nContent-Length: 10\r\n\r\nhalf")
	s.ok(err)
	s.ok(conn.(*net.TCPConn).CloseWrite())
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	s.ok(err)
	defer res.Body.Close()
	if res.StatusCode != 400 || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d, %v", res.StatusCode, res.Header)
	}
	s.wantDone(0, 0)
}

// Who loses the race for a key is told that it is in flight, or what came of it; it is no failure
// of the server's.
func TestARaceForAKeyIsNoFailure(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := newSite(t, e, nil)
		other := *e
		other.DB = e.Pool(t)
		there := s.beside(&other)
		for round := range 4 {
			var made atomic.Int64
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					at := []*site{s, there}[i%2]
					switch r := at.post(fmt.Sprint("key", round), "body"); {
					case r.StatusCode == 201 && r.Header.Get("Idempotent-Replayed") == "":
						made.Add(1)
					case r.StatusCode != 201 && r.StatusCode != 409:
						t.Errorf("got %d: %s", r.StatusCode, r.body)
					}
				})
			}
			all.Wait()
			if made.Load() != 1 {
				t.Errorf("%d of 16 were the first", made.Load())
			}
		}
		s.runs.Add(there.runs.Load())
		s.wantDone(4, 4)
	})
}
