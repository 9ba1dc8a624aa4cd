package oneline_test

import (
	"errors"
	"io"
	"testing"

	"github.com/rowlockdb/rowlock/internal/oneline"
)

func TestErrorsAreJoinedInOneLine(t *testing.T) {
	err := oneline.Join(nil, io.EOF, nil, errors.ErrUnsupported)
	if !errors.Is(err, io.EOF) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v is not both", err)
	}
	if got, want := err.Error(), "EOF; unsupported operation"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsNoErrorIsLeftOut(t *testing.T) {
	if err := oneline.Join(nil, nil); err != nil {
		t.Errorf("%v of nothing", err)
	}
	if err := oneline.Join(nil, io.EOF); err != io.EOF {
		t.Errorf("%v, want the only one as it is", err)
	}
}
