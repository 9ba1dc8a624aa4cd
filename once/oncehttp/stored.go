package oncehttp

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/rowlockdb/rowlock/lease"
)

// format is the first byte of every kept response. A later version of this package may write
// another, and must read this one for as long as results are kept.
const format = 1

// stored is a kept response: after the format byte, JSON. A header's bytes are spelled as the
// characters of the same numbers (ISO 8859-1), because JSON needs UTF-8 and they need not be.
type stored struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

func (s stored) encode() ([]byte, error) {
	s.Header = spell(s.Header)
	text, err := json.Marshal(s)
	return append([]byte{format}, text...), err
}

func decode(b []byte) (s stored, err error) {
	switch {
	case len(b) == 0:
		return s, fmt.Errorf("%w: the stored response is empty: was the key used with once.Do?", lease.ErrCorrupt)
	case b[0] != format:
		return s, fmt.Errorf("%w: the stored response has format %d, and this version reads %d: it was written "+
			"by a later version, or not by oncehttp", lease.ErrCorrupt, b[0], format)
	}
	if err := json.Unmarshal(b[1:], &s); err != nil {
		return stored{}, fmt.Errorf("%w: the stored response: %w", lease.ErrCorrupt, err)
	}
	if s.Status < 200 || s.Status > 999 {
		return stored{}, fmt.Errorf("%w: the stored response has status %d", lease.ErrCorrupt, s.Status)
	}
	header, ok := unspell(s.Header)
	if !ok {
		return stored{}, fmt.Errorf("%w: the stored response has a header that is not of bytes", lease.ErrCorrupt)
	}
	s.Header = keep(header)
	return s, nil
}

func spell(h http.Header) http.Header {
	h = h.Clone()
	for _, values := range h {
		for i, v := range values {
			text := make([]rune, len(v))
			for at := range len(v) {
				text[at] = rune(v[at])
			}
			values[i] = string(text)
		}
	}
	return h
}

// unspell undoes spell, and reports whether h can have come from spell.
func unspell(h http.Header) (http.Header, bool) {
	for _, values := range h {
		for i, v := range values {
			var b []byte
			for _, c := range v {
				if c > 0xff {
					return nil, false
				}
				b = append(b, byte(c))
			}
			values[i] = string(b)
		}
	}
	return h, true
}

// fleeting are the headers that are not kept: a session must not be handed out again, and the
// others belong to one connection or moment.
var fleeting = map[string]bool{
	"Set-Cookie": true, "Set-Cookie2": true, "Date": true, "Connection": true, "Keep-Alive": true,
	"Proxy-Authenticate": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Proxy-Authentication-Info": true, "Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, replayedHeader: true,
}

// keep returns the headers that a repeat may have, under their canonical names.
func keep(all http.Header) http.Header {
	named := make(map[string]bool) // by Connection, because they are for one connection
	for _, v := range all.Values("Connection") {
		for _, name := range split(v) {
			named[http.CanonicalHeaderKey(name)] = true
		}
	}
	kept := make(http.Header, len(all))
	for name, values := range all {
		name = http.CanonicalHeaderKey(name)
		if !fleeting[name] && !named[name] && !isTrailer(name) {
			kept[name] = append(kept[name], values...)
		}
	}
	return kept
}
