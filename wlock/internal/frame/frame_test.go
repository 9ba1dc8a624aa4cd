package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
)

func TestFramesAreFoundWhereverReadsAreSplit(t *testing.T) {
	list := frames(t)
	r := iotest.OneByteReader(bytes.NewReader(slices.Concat(list...)))
	var buf []byte
	for i, f := range list {
		body, err := Read(r, buf, MaxBody)
		if err != nil || !bytes.Equal(body, f[4:len(f)-5]) {
			t.Fatalf("%d: %x, %v", i, body, err)
		}
		buf = body
	}
	if _, err := Read(r, buf, MaxBody); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestWhatIsNoFrameIsATypedError(t *testing.T) {
	whole := frames(t)[0]
	broken := func(at int) []byte {
		f := bytes.Clone(whole)
		f[at] ^= 1
		return f
	}
	for name, c := range map[string]struct {
		bytes []byte
		want  error
	}{
		"trailer":      {broken(len(whole) - 1), ErrCorrupt},
		"inner length": {broken(4), ErrCorrupt},
		"too short":    {make([]byte, 20), ErrCorrupt},
		"cut":          {whole[:len(whole)-1], io.ErrUnexpectedEOF},
		"gigabytes":    {binary.BigEndian.AppendUint32(nil, 3<<30), ErrTooLong},
	} {
		if _, err := Read(bytes.NewReader(c.bytes), nil, MaxBody); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestAPartOfAMessageIsNone(t *testing.T) {
	for i, f := range frames(t) {
		if _, is := vectors[i].(*Control); is {
			continue // its payload is what is left
		}
		body := f[4 : len(f)-5]
		for n := range len(body) {
			if err := Decode(body[:n], empty(vectors[i])); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d: %d of %d bytes: %v", i, n, len(body), err)
			}
		}
		if err := Decode(append(bytes.Clone(body), 0), empty(vectors[i])); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d: a byte more: %v", i, err)
		}
	}
}

// asked notes how large the buffer was that a frame is read into.
type asked struct {
	io.Reader
	most int
}

func (a *asked) Read(p []byte) (int, error) {
	a.most = max(a.most, len(p))
	return a.Reader.Read(p)
}

func TestALengthThatIsOnlyClaimedAllocatesNothing(t *testing.T) {
	r := &asked{Reader: bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, MaxBody), 1, 2, 3))}
	if _, err := Read(r, nil, MaxBody); !errors.Is(err, io.ErrUnexpectedEOF) || r.most > 16<<10 {
		t.Errorf("a buffer of %d bytes, and %v", r.most, err)
	}
}

// FuzzRead decodes all of a stream as each side would. What is decoded must be written as it came,
// but for the upper half of a process, which Get repeats and a reader ignores.
func FuzzRead(f *testing.F) {
	for _, one := range frames(f) {
		f.Add(one)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		for {
			at := len(stream) - r.Len()
			body, err := Read(r, nil, 1<<16)
			if err != nil {
				return
			}
			whole := stream[at : len(stream)-r.Len()]
			for _, m := range []message{&Request{}, &Response{}, &Control{}} {
				if Decode(body, m) != nil {
					continue
				}
				if got, is := m.(*Response); is && got.Type == Get {
					continue
				}
				if got := Append(nil, m); !bytes.Equal(got, whole) {
					t.Fatalf("%x was read as %+v and written as %x", whole, m, got)
				}
			}
		}
	})
}
