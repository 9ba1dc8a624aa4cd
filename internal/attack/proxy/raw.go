package proxy

import "bufio"

// Raw passes bytes of any protocol on. It knows no statements.
func Raw() talk { return raw{} }

type raw struct{}

func (raw) read(in *bufio.Reader) (s Statement, err error) {
	if _, err := in.Peek(1); err != nil {
		return s, err
	}
	s.bytes = make([]byte, in.Buffered())
	_, err = in.Read(s.bytes)
	return s, err
}

func (raw) reply([]byte) bool { return false }
