package oncehttp

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// recorder is the handler's ResponseWriter. It sends nothing before the commit. It counts what the
// response takes up as it is kept, so that the handler learns of one that is too large.
type recorder struct {
	header http.Header
	status int
	sent   http.Header // the headers when the status was written
	body   bytes.Buffer
	frame  int // what the response takes up without its body
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
	r.frame = frame(r.status, r.sent)
	r.over = r.over || r.frame > r.limit
}

// frame is what a response takes up without its body. Its type may be guessed later; no guess of
// net/http is longer.
func frame(status int, sent http.Header) int {
	header := keep(sent)
	if len(header["Content-Type"]) == 0 {
		header.Set("Content-Type", "application/vnd.ms-fontobject")
	}
	text, err := stored{Status: status, Header: header, Body: []byte{0}}.encode()
	if err != nil {
		return 0 // to keep it fails too
	}
	return len(text) - base64.StdEncoding.EncodedLen(1)
}

// Write keeps what fits. The handler gets an error if its response is too large, and can still
// write a smaller one under another key.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK) // unless there is a status
	if r.frame+base64.StdEncoding.EncodedLen(r.body.Len()+len(b)) > r.limit {
		r.over = true
		return 0, errTooLarge
	}
	return r.body.Write(b)
}

// finish returns the response.
func (r *recorder) finish() stored {
	r.WriteHeader(http.StatusOK) // unless there is a status
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
	items := strings.Split(list, ",")
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return items
}
