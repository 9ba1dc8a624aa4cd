package tokenfence_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/tokenfence"
)

// report is an object: its token is in its content, because the ETag is a hash of that.
type report struct {
	Token rowlock.Token `json:"token"`
	Body  string        `json:"body"`
}

// put writes the report to an object store under a token.
func put(ctx context.Context, url string, r report) error {
	look := func(ctx context.Context) (found rowlock.Token, etag string, err error) {
		res, err := send(ctx, http.MethodGet, url, "", nil)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		var was report
		switch res.StatusCode {
		case http.StatusOK:
			err = json.NewDecoder(res.Body).Decode(&was)
			return was.Token, res.Header.Get("ETag"), err
		case http.StatusNotFound:
			return 0, "", nil
		}
		return 0, "", errors.New(res.Status)
	}
	write := func(ctx context.Context, etag string) (stored bool, err error) {
		content, err := json.Marshal(r)
		if err != nil {
			return false, err
		}
		res, err := send(ctx, http.MethodPut, url, etag, content)
		if err != nil {
			return false, err
		}
		defer res.Body.Close()
		switch res.StatusCode {
		case http.StatusOK:
			return true, nil
		case http.StatusPreconditionFailed, http.StatusConflict:
			return false, nil
		}
		return false, errors.New(res.Status)
	}
	return tokenfence.Swap(ctx, r.Token, look, write)
}

// send sends a request. A PUT is done only if the object still has the ETag, or is still missing.
func send(ctx context.Context, method, url, etag string, content []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(string(content)))
	if err != nil {
		return nil, err
	}
	switch {
	case method == http.MethodPut && etag != "":
		req.Header.Set("If-Match", etag)
	case method == http.MethodPut:
		req.Header.Set("If-None-Match", "*")
	}
	return http.DefaultClient.Do(req)
}

// An object store refuses the late write of a holder whose lock was taken over.
func ExampleSwap() {
	locks, _, done := open()
	defer done()
	bucket := httptest.NewServer(&bucket{})
	defer bucket.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ctx := context.Background()

	stalled, err := locks.Lock(ctx, "report/q3")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("first holder:", put(ctx, bucket.URL+"/q3", report{stalled.Token(), "draft"}))
	_ = stalled.Unlock(ctx) // as if its lease had ended, unnoticed
	next, err := locks.Lock(ctx, "report/q3")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Unlock(ctx)
	fmt.Println("next holder:", put(ctx, bucket.URL+"/q3", report{next.Token(), "final"}))
	err = put(ctx, bucket.URL+"/q3", report{stalled.Token(), "stale"})
	fmt.Println("first holder is fenced:", errors.Is(err, rowlock.ErrFenced))
	// Output:
	// first holder: <nil>
	// next holder: <nil>
	// first holder is fenced: true
}

// bucket stands for an object store: GET, and PUT with If-Match or If-None-Match.
type bucket struct {
	mu      sync.Mutex
	objects map[string]string
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, there := b.objects[r.URL.Path]
	etag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256([]byte(content))))
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case r.Method == http.MethodGet && !there:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag)
		_, _ = io.WriteString(w, content)
	case there && none == "*", match != "" && (!there || match != etag):
		w.WriteHeader(http.StatusPreconditionFailed)
	default:
		body, _ := io.ReadAll(r.Body)
		if b.objects == nil {
			b.objects = make(map[string]string)
		}
		b.objects[r.URL.Path] = string(body)
	}
}
