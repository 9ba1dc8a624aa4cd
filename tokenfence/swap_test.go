package tokenfence_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/tokenfence"
)

// object is one object of a store whose writes are conditional.
type object struct {
	token   lease.Token
	version int
	between func() // what others do between a look and a write
	writes  int
}

func (o *object) swap(ctx context.Context, token lease.Token) error {
	return tokenfence.Swap(ctx, token, func(context.Context) (lease.Token, int, error) {
		found, version := o.token, o.version
		if o.between != nil {
			o.between()
		}
		return found, version, nil
	}, func(_ context.Context, version int) (bool, error) {
		o.writes++
		if version != o.version {
			return false, nil
		}
		o.token, o.version = token, o.version+1
		return true, nil
	})
}

func TestSwapRefusesAnOlderToken(t *testing.T) {
	s, o := &site{T: t}, &object{}
	for _, token := range []lease.Token{7, 7, 9} {
		s.ok(o.swap(t.Context(), token))
	}
	s.wantIs(o.swap(t.Context(), 8), lease.ErrFenced, "token 9", "has 8")
	if o.token != 9 || o.writes != 3 {
		t.Errorf("%+v", o)
	}
}

func TestSwapLooksAgainIfTheObjectHasChanged(t *testing.T) {
	s, o := &site{T: t}, &object{}
	o.between = func() { o.between, o.version, o.token = nil, 5, 7 }
	s.ok(o.swap(t.Context(), 8))
	o.between = func() { o.between, o.version, o.token = nil, 9, 10 }
	s.wantIs(o.swap(t.Context(), 9), lease.ErrFenced, "token 10")
	if o.token != 10 {
		t.Errorf("%+v", o)
	}
}

func TestSwapEnds(t *testing.T) {
	s, o := &site{T: t}, &object{}
	o.between = func() { o.version++ }
	s.wantIs(o.swap(t.Context(), 7), lease.ErrBusy, "10 times")
	ctx, cancel := context.WithCancel(t.Context())
	o.between = func() { o.version++; cancel() }
	if err := o.swap(ctx, 7); !errors.Is(err, context.Canceled) || o.writes != 11 {
		t.Errorf("%v after %d writes", err, o.writes)
	}
}

func TestSwapReturnsTheErrorsOfTheStore(t *testing.T) {
	broken := errors.New("broken")
	look := func(context.Context) (lease.Token, int, error) { return 0, 0, nil }
	for _, err := range []error{
		tokenfence.Swap(t.Context(), 7, func(context.Context) (lease.Token, int, error) { return 9, 0, broken },
			func(context.Context, int) (bool, error) { t.Error("written"); return true, nil }),
		tokenfence.Swap(t.Context(), 7, look,
			func(context.Context, int) (bool, error) { return false, broken }),
	} {
		if err != broken {
			t.Errorf("got %v", err)
		}
	}
}

func TestSwapRefusesWhatCannotBe(t *testing.T) {
	s, o := &site{T: t}, &object{}
	s.wantIs(o.swap(t.Context(), 0), lease.ErrConfig, "0 is no token")
	s.wantIs(tokenfence.Swap[int](t.Context(), 7, nil, nil), lease.ErrConfig, "function")
	var noContext context.Context
	s.wantIs(o.swap(noContext, 7), lease.ErrConfig, "ctx is nil")
}
