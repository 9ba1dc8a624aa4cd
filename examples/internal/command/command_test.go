package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, c := range []struct {
		ctx    context.Context
		err    error
		status int
		said   string
	}{
		{t.Context(), nil, 0, ""},
		{t.Context(), errors.New("no luck"), 1, "x: no luck\n"},
		{interrupted, nil, 0, ""},
		{interrupted, context.Canceled, 130, "x: interrupted\n"},
		{interrupted, fmt.Errorf("%w: a table", ErrLeft), 130, "x: interrupted\nx: something was left behind: a table\n"},
	} {
		var said strings.Builder
		if got := status(c.ctx, "x", c.err, &said); got != c.status || said.String() != c.said {
			t.Errorf("%v: %d, %q, want %d, %q", c.err, got, said.String(), c.status, c.said)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	bad := errors.New("-n is at least 1")
	for args, want := range map[string]string{"": bad.Error(), "extra": `"extra" is no flag, and there are no other arguments; see -h`} {
		flags := flag.NewFlagSet("x", flag.ContinueOnError)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := wrong(flags, func() error { return bad }); err == nil || err.Error() != want {
			t.Errorf("%q: %v", args, err)
		}
	}
}
