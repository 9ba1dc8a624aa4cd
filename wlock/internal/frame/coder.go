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

func (c *coder) u8(v *byte) { c.bytes(1, func(b []byte) { b[0] = *v }, func(b []byte) { *v = b[0] }) }

func (c *coder) i16(v *int16) {
	c.bytes(2, func(b []byte) { binary.LittleEndian.PutUint16(b, uint16(*v)) },
		func(b []byte) { *v = int16(binary.LittleEndian.Uint16(b)) })
}

func (c *coder) i32(v *int32) {
	c.bytes(4, func(b []byte) { binary.LittleEndian.PutUint32(b, uint32(*v)) },
		func(b []byte) { *v = int32(binary.LittleEndian.Uint32(b)) })
}

func (c *coder) i64(v *int64) {
	c.bytes(8, func(b []byte) { binary.LittleEndian.PutUint64(b, uint64(*v)) },
		func(b []byte) { *v = int64(binary.LittleEndian.Uint64(b)) })
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
	if c.u8(&got); got != want {
		c.failed = true
	}
}

// key is a string after its length of 16 bits, text one after 32.
func (c *coder) key(v *string) {
	n := int16(len(*v))
	c.i16(&n)
	c.string(int(n), v)
}

func (c *coder) text(v *string) {
	n := int32(len(*v))
	c.i32(&n)
	c.string(int(n), v)
}

func (c *coder) string(n int, v *string) {
	c.bytes(n, func(b []byte) { copy(b, *v) }, func(b []byte) { *v = string(b) })
}

// rest is all that is left.
func (c *coder) rest(v *[]byte) {
	n := len(*v)
	if c.decodes {
		n = len(c.b) - c.at
	}
	c.bytes(n, func(b []byte) { copy(b, *v) }, func(b []byte) { *v = append([]byte(nil), b...) })
}
