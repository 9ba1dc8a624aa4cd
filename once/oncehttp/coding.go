package oncehttp

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// accepts reports whether a client reads a content coding. One that names none reads none: clients
// that compress say so, and what a program reads as bytes is not unpacked for it.
func accepts(r *http.Request, coding string) bool {
	rest := false
	for _, item := range split(strings.Join(r.Header.Values("Accept-Encoding"), ",")) {
		name, weight, _ := strings.Cut(item, ";")
		name, wanted := strings.ToLower(strings.TrimSpace(name)), !isZero(weight)
		switch {
		case strings.TrimPrefix(name, "x-") == coding:
			return wanted
		case name == "*":
			rest = wanted
		}
	}
	return rest
}

// isZero reports whether a parameter is a weight of 0.
func isZero(weight string) bool {
	name, value, _ := strings.Cut(weight, "=")
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return strings.TrimSpace(name) == "q" && err == nil && q == 0
}

// coding is the one content coding of a stored response. It is "" if there is none.
func (s stored) coding() string {
	name := strings.ToLower(strings.TrimSpace(strings.Join(s.Header.Values("Content-Encoding"), ",")))
	if name == "identity" {
		return ""
	}
	return strings.TrimPrefix(name, "x-")
}

// readable returns the response in a form that the client of a repeat reads. The first client may
// have asked for another. It reports false if this package cannot unpack it.
func (s stored) readable(r *http.Request, limit int64) (stored, bool) {
	coding := s.coding()
	if coding == "" {
		return s, true
	}
	s.Header = s.Header.Clone()
	s.Header.Add("Vary", "Accept-Encoding")
	if accepted(r, coding) {
		return s, true
	}
	if coding != "gzip" {
		return s, false
	}
	packed, err := gzip.NewReader(bytes.NewReader(s.Body))
	if err != nil {
		return s, false
	}
	body, err := io.ReadAll(io.LimitReader(packed, limit+1))
	if err != nil || int64(len(body)) > limit {
		return s, false
	}
	s.Body = body
	for _, ofPacked := range []string{"Content-Encoding", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5"} {
		s.Header.Del(ofPacked)
	}
	if tag := s.Header.Get("Etag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		s.Header.Set("Etag", "W/"+tag)
	}
	return s, true
}

// accepted is accepts of each of several codings.
func accepted(r *http.Request, codings string) bool {
	for _, coding := range split(codings) {
		if !accepts(r, strings.TrimPrefix(coding, "x-")) {
			return false
		}
	}
	return true
}
