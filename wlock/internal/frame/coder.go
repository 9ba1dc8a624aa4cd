package frame

import "encoding/binary"

// coder writes the fields that it is given, or reads them.
type coder struct {
	b       []byte
	at      int // where the next field begins; of a reader
	decodes bool
	failed  bool
}

// next returns n bytes to write to or to read from, and nil if the body has ended.
func (c *coder) next(n int) []byte {
	switch {
	case !c.decodes:
		c.b = append(c.b, make([]byte, n)...)
		return c.b[len(c.b)-n:]
	case c.failed || n < 0 || n > len(c.b)-c.at:
		c.failed = true
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

// number is an integer of whatever size v points to.
func (c *coder) number(v any) {
	c.bytes(binary.Size(v), func(b []byte) { _, _ = binary.Encode(b, binary.LittleEndian, v) },
		func(b []byte) { _, _ = binary.Decode(b, binary.LittleEndian, v) })
}

func (c *coder) raw(v []byte) {
	c.bytes(len(v), func(b []byte) { copy(b, v) }, func(b []byte) { copy(v, b) })
}

func (c *coder) bytes(n int, write, read func(b []byte)) {
	b := c.next(n)
	switch {
	case b == nil:
	case c.decodes:
		read(b)
	default:
		write(b)
	}
}

// only is a byte that has one value.
func (c *coder) only(want byte) {
	got := want
	if c.number(&got); got != want {
		c.failed = true
	}
}

// text is a string after its length, which has the size of N.
func text[N int16 | int32](c *coder, v *string) {
	n := N(len(*v))
	c.number(&n)
	c.bytes(int(n), func(b []byte) { copy(b, *v) }, func(b []byte) { *v = string(b) })
}

// rest is all that is left.
func (c *coder) rest(v *[]byte) {
	n := len(*v)
	if c.decodes {
		n = len(c.b) - c.at
	}
	c.bytes(n, func(b []byte) { copy(b, *v) }, func(b []byte) { *v = append([]byte(nil), b...) })
}
