package oncehttp

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// recorder is the handler's ResponseWriter. It sends nothing before the commit.
type recorder struct {
	header http.Header
	status int
	sent   http.Header // the headers when the status was written
	body   bytes.Buffer
	limit  int
	over   bool
}

func newRecorder(limit int) *recorder { return &recorder{header: make(http.Header), limit: limit} }

func (r *recorder) Header() http.Header { return r.header }

// WriteHeader ignores a second status, and 1xx, which are no answer. It panics as net/http's own
// does, which would do so after the commit.
func (r *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %d", status))
	}
	if r.status != 0 || status < 200 {
		return
	}
	r.status, r.sent = status, clone(r.header)
}

// Write keeps what fits. The handler gets an error if its response is too large, and can still
// write a smaller one under another key.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.body.Len()+len(b) > r.limit {
		r.over = true
		return 0, errTooLarge
	}
	return r.body.Write(b)
}

// finish returns the response.
func (r *recorder) finish() stored {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if _, named := r.sent["Content-Type"]; !named && r.body.Len() > 0 && r.sent.Get("Content-Encoding") == "" {
		// As net/http does, so that a later Go guesses the same.
		r.sent.Set("Content-Type", http.DetectContentType(r.body.Bytes()))
	}
	return stored{Status: r.status, Header: r.sent, Body: r.body.Bytes()}
}

// clone is a copy without trailers: they would have to follow what is not sent in pieces.
func clone(h http.Header) http.Header {
	h = h.Clone()
	maps.DeleteFunc(h, func(name string, _ []string) bool { return isTrailer(name) })
	return h
}

func isTrailer(name string) bool { return strings.HasPrefix(name, http.TrailerPrefix) }

func split(list string) []string {
	return slices.Collect(func(yield func(string) bool) {
		for s := range strings.SplitSeq(list, ",") {
			if !yield(strings.TrimSpace(s)) {
				return
			}
		}
	})
}
