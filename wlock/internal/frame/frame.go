package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxBody is the longest body that Read takes: what the Java client's receive buffer holds.
const MaxBody = 1 << 20

var (
	// ErrTooLong: the peer claims a body above the limit. Nothing of it was read.
	ErrTooLong = errors.New("wlock: frame too long")
	// ErrCorrupt: bytes that are no frame, or a body that is no message. The stream cannot be
	// trusted any more: close it.
	ErrCorrupt = errors.New("wlock: corrupt frame")
)

// trailer ends each frame. It may occur inside a body, so that only the length tells its end.
var trailer = [5]byte{0x09, 0x0a, 0x0d, 0x11, 0x12}

// smallest is the length of the smallest body, a registry's without payload.
const smallest = 15

// Read returns the body of the next frame, in buf if that is large enough. most bounds its length.
// An error at the first byte of a frame is io.EOF.
func Read(r io.Reader, buf []byte, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	switch {
	case n > uint32(most):
		return nil, fmt.Errorf("%w: %d bytes are claimed, %d are the most", ErrTooLong, n, most)
	case n < smallest:
		return nil, fmt.Errorf("%w: a body of %d bytes", ErrCorrupt, n)
	}
	all := bytes.NewBuffer(buf[:0]) // which grows as what fills it arrives
	_, err := io.CopyN(all, r, int64(n)+int64(len(trailer)))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	body, end := all.Bytes()[:n], all.Bytes()[n:]
	switch inner := binary.LittleEndian.Uint32(body); {
	case [5]byte(end) != trailer:
		return nil, fmt.Errorf("%w: the trailer is %x", ErrCorrupt, end)
	case inner != n:
		return nil, fmt.Errorf("%w: the lengths are %d outside and %d inside", ErrCorrupt, n, inner)
	}
	return body, nil
}

// message is what a frame carries. layout reads or writes all of its body after the length.
type message interface{ layout(c *coder) }

// Append appends m as a frame. Its strings must fit their lengths: the caller has checked them.
func Append(to []byte, m message) []byte {
	at := len(to)
	c := coder{b: append(to, make([]byte, 8)...)}
	m.layout(&c)
	n := uint32(len(c.b) - at - 4)
	binary.BigEndian.PutUint32(c.b[at:], n)
	binary.LittleEndian.PutUint32(c.b[at+4:], n)
	return append(c.b, trailer[:]...)
}

// Decode reads a body, as Read has returned it, into m. It refuses a body with bytes left over.
func Decode(body []byte, m message) error {
	c := coder{b: body, at: 4, decodes: true}
	if m.layout(&c); c.failed || c.at != len(body) {
		return fmt.Errorf("%w: %d bytes are no %T", ErrCorrupt, len(body), m)
	}
	return nil
}
