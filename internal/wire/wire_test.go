package wire

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// told is a TB that keeps what it is told.
type told struct{ errors []string }

func (*told) Helper()             {}
func (o *told) Fatal(args ...any) { o.errors = append(o.errors, fmt.Sprint(args...)) }

func (o *told) Errorf(format string, args ...any) {
	o.errors = append(o.errors, fmt.Sprintf(format, args...))
}

func (o *told) wants(t *testing.T, texts ...string) {
	t.Helper()
	if len(o.errors) != len(texts) {
		t.Errorf("%d errors, want %d: %q", len(o.errors), len(texts), o.errors)
		return
	}
	for i, text := range texts {
		if !strings.Contains(o.errors[i], text) {
			t.Errorf("error %d is %q, want %q in it", i, o.errors[i], text)
		}
	}
}

// Every output for programs goes through JSON, so that none of them has a token that is rounded.
func TestATokenThatIsNoStringIsFound(t *testing.T) {
	for text, want := range map[string]string{
		`{"token": 7}`:                          "x.token is 7",
		`{"keys": [{"rowlock.token": 7}]}`:      "x.keys[0].rowlock.token is 7",
		`{"tokens_above": null}`:                "x.tokens_above is",
		`{"raised_to": 7}`:                      "x.raised_to is 7",
		`{"n": 9007199254740992}`:               "x.n is 9007199254740992",
		`[1, -1e300]`:                           "x[1] is -1e300",
		`{"token": "7"} {"token": {"of": "7"}}`: "x.token is map",
	} {
		var o told
		New("", "", "a token:").JSON(&o, "x", text)
		o.wants(t, want)
		if !strings.Contains(strings.Join(o.errors, ""), "| a token: `int64` in Go") {
			t.Errorf("%s: the promise is not in %q", text, o.errors)
		}
	}
	var o told
	New("", "", "a token:").JSON(&o, "x", `{"token": "9007199254740993", "n": 9007199254740991, "at": "now"}`)
	o.wants(t)
}

func TestAChangeNamesThePromiseThatItBreaks(t *testing.T) {
	if Updates() {
		t.Skip("it compares with what it has written")
	}
	var o told
	New("another", "", "exit codes").Match(&o, filepath.Join("..", "..", "testdata", "wire", "cli.txt"))
	o.wants(t, "| exit codes of the command line |")
	o = told{}
	New("", "", "nothing of the kind").Match(&o, filepath.Join("..", "..", "testdata", "wire", "cli.txt"))
	if len(o.errors) == 0 || !strings.Contains(o.errors[0], "promises nothing of: nothing of the kind") {
		t.Errorf("a promise that is not there: %q", o.errors)
	}
}
