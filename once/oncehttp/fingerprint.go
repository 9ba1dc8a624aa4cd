package oncehttp

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/once"
)

// fingerprint tells a repeat from another request. RequestURI has what the client asked for,
// because http.StripPrefix gives two such requests the same URL. A request that came from no client
// has only the URL. Two hosts of one server are not asked for the same, but two ports of a host may
// be two processes of one service. A form that a handler around Wrap has parsed has left no body.
func fingerprint(r *http.Request, body []byte) []byte {
	h := r.Header
	kind, encoding := h.Get("Content-Type"), h.Get("Content-Encoding")
	if len(body) == 0 {
		body = []byte(r.PostForm.Encode())
	}
	if encoding == "" {
		kind, body = unbound(kind, body, nested)
	}
	return once.Fingerprint([]byte(r.Method), []byte(hostOf(r)), []byte(r.RequestURI),
		[]byte(r.URL.RequestURI()), []byte(kind), []byte(encoding), body)
}

// hostOf is the host that the client named, without its port.
func hostOf(r *http.Request) string {
	host := strings.ToLower(r.Host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// nested is how deep parts within parts are read.
const nested = 4

// unbound returns the type and the contents of a body without the boundary of its parts, which a
// client draws anew whenever it builds the same form. Anything else, and what is no such body,
// stays byte for byte: only an application knows which JSON means the same.
func unbound(kind string, body []byte, deep int) (string, []byte) {
	media, params, err := mime.ParseMediaType(kind)
	boundary := params["boundary"]
	if err != nil || deep == 0 || boundary == "" || !strings.HasPrefix(media, "multipart/") {
		return kind, body
	}
	parts, err := partsOf(multipart.NewReader(bytes.NewReader(body), boundary), deep-1)
	delete(params, "boundary")
	if err != nil {
		return kind, body
	}
	return mime.FormatMediaType(media, params), once.Fingerprint(parts...)
}

// partsOf returns a fingerprint of each part: of its headers by their names, and of its contents.
func partsOf(form *multipart.Reader, deep int) (parts [][]byte, err error) {
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		var kind string
		kind, content = unbound(part.Header.Get("Content-Type"), content, deep)
		parts = append(parts, once.Fingerprint(append(headers(part.Header), []byte(kind), content)...))
	}
}

// headers lists those of a part but its type.
func headers(h textproto.MIMEHeader) (all [][]byte) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name != "Content-Type" {
			all = append(all, []byte(name), []byte(strings.Join(h[name], "\n")))
		}
	}
	return all
}
