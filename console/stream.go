package console

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// streamLife is how long a stream goes on. Its viewer is authorized anew afterwards.
	streamLife = 5 * time.Minute
	// writing bounds a write to a viewer that does not read.
	writing = 10 * time.Second
	// beat keeps proxies from closing a stream in which nothing happens.
	beat = 15 * time.Second
)

// stream sends a view again and again, until the viewer leaves.
func (c *Console) stream(w http.ResponseWriter, r *http.Request) {
	v, err := parse(r.URL.Query().Get("page"), r.URL.Query())
	if err != nil || v.Events() == "" {
		http.Error(w, "rowlock: no such page", http.StatusBadRequest)
		return
	}
	leave, err := c.enter(viewer(r))
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "rowlock: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	s := &sender{w: w, rc: http.NewResponseController(w)}
	if err := s.open(); err != nil {
		c.o.Logger.ErrorContext(r.Context(), "rowlock: console: pages cannot refresh themselves: give a "+
			"middleware's http.ResponseWriter a method Unwrap", "error", err)
		http.Error(w, "rowlock: this server cannot send streams; see the log", http.StatusNotImplemented)
		return
	}
	frames, part := c.feed.join(v)
	defer part()
	s.follow(r, frames, c.closed)
}

// enter counts a stream. It fails if there are too many.
func (c *Console) enter(who string) (leave func(), err error) {
	select {
	case <-c.closed:
		return nil, errors.New("this console is closing")
	default:
		return c.seats.take(who)
	}
}

// sender writes events.
type sender struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error
}

// open begins the stream. It sends nothing if the stream could not go on.
func (s *sender) open() error {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store, no-transform") // a proxy that compresses would hold events back
	h.Set("X-Accel-Buffering", "no")
	_ = s.rc.SetReadDeadline(time.Time{}) // a server's ReadTimeout would end the stream
	if err := s.rc.Flush(); errors.Is(err, http.ErrNotSupported) {
		return err
	}
	s.send([]byte("retry: 2000\n\n"))
	return nil
}

func (s *sender) follow(r *http.Request, frames <-chan *frame, closed <-chan struct{}) {
	end := time.NewTimer(streamLife)
	defer end.Stop()
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for s.err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-closed:
			return
		case <-end.C:
			return
		case <-beats.C:
			s.send([]byte(": beat\n\n"))
		case f := <-frames:
			s.send(event(f))
		}
	}
}

func (s *sender) send(text []byte) {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writing))
	if _, s.err = s.w.Write(text); s.err == nil {
		s.err = s.rc.Flush()
	}
}

// event is a frame on the wire: what the view shows, after a line that says how many seconds ago
// and when it was read; or why that cannot be read.
func event(f *frame) []byte {
	var b bytes.Buffer
	if f.err != nil {
		fmt.Fprintf(&b, "event: trouble\ndata: %s\n\n", trouble(f.err))
		return b.Bytes()
	}
	fmt.Fprintf(&b, "event: view\ndata: %.2f %s\n", max(0, time.Since(f.asOf).Seconds()), utc(f.asOf))
	for line := range bytes.Lines(bytes.ReplaceAll(f.html, []byte("\r"), nil)) {
		b.WriteString("data: ")
		b.Write(bytes.TrimSuffix(line, []byte("\n")))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
