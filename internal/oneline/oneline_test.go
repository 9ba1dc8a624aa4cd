package oneline_test

import (
	"context"
	"errors"
	"fmt"
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

func TestWhatSeveralErrorsSayIsSaidOnce(t *testing.T) {
	lost := errors.New("rowlock: lost")
	late := fmt.Errorf("%w: unlock %q: its row is gone", lost, "k")
	for want, errs := range map[string][]error{
		`rowlock: lost: unlock "k": its row is gone`: {lost, late},
		"rowlock: lost":                      {lost, lost},
		"rowlock: busy; lost":                {errors.New("rowlock: busy"), lost},
		"rowlock: lost; context canceled":    {lost, context.Canceled},
		"the job failed; rowlock: lost":      {errors.New("the job failed"), lost},
		"rowlock: lost; lostly":              {lost, errors.New("rowlock: lostly")},
		"rowlock: lost: again; busy: of two": {fmt.Errorf("%w: again", lost), lost, errors.New("rowlock: busy: of two")},
	} {
		if got := oneline.Join(errs...).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
