package lease_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rowlockdb/rowlock/lease"
)

// anyToken draws tokens of every size, and successive ones above 2^53 often.
func anyToken(t *rapid.T, name string) lease.Token {
	return lease.Token(rapid.OneOf(
		rapid.Int64Range(0, 1<<63-1),
		rapid.Int64Range(0, 100),
		rapid.Int64Range(104066655287758849, 104066655287758865),
	).Draw(t, name))
}

func TestATokenComesBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyToken(t, "token")
		digits := fmt.Sprintf("%d", int64(want))
		value, err := want.Value()
		if value != int64(want) || err != nil {
			t.Errorf("Value of %d: %v, %v", want, value, err)
		}
		marshaled, err := json.Marshal(want)
		if string(marshaled) != `"`+digits+`"` || err != nil {
			t.Errorf("the JSON of %d is %s, %v", want, marshaled, err)
		}
		text, err := want.MarshalText()
		if string(text) != want.String() || want.String() != digits || err != nil {
			t.Errorf("the text of %d is %q, %v, and String %q", want, text, err, want.String())
		}
		for what, read := range map[string]func(*lease.Token) error{
			"a JSON string": func(into *lease.Token) error { return json.Unmarshal(marshaled, into) },
			"a JSON number": func(into *lease.Token) error { return json.Unmarshal([]byte(digits), into) },
			"JSON of Text":  func(into *lease.Token) error { return json.Unmarshal([]byte(`"`+want.Text()+`"`), into) },
			"text":          func(into *lease.Token) error { return into.UnmarshalText(text) },
			"Text":          func(into *lease.Token) error { return into.UnmarshalText([]byte(want.Text())) },
			"a column":      func(into *lease.Token) error { return into.Scan(value) },
			"MySQL's bytes": func(into *lease.Token) error { return into.Scan(text) },
			"a text column": func(into *lease.Token) error { return into.Scan(want.Text()) },
		} {
			got := lease.Token(-1)
			if err := read(&got); err != nil || got != want {
				t.Errorf("%d read from %s is %d, %v", want, what, got, err)
			}
		}
	})
}

func TestAKeyOfAJSONObjectIsATokensString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[lease.Token]int{anyToken(t, "a"): 1, anyToken(t, "b"): 2}
		b, err := json.Marshal(want)
		var got map[lease.Token]int
		if failed := json.Unmarshal(b, &got); err != nil || failed != nil || len(got) != len(want) {
			t.Fatalf("%v is %s and read as %v: %v, %v", want, b, got, err, failed)
		}
		for token, n := range want {
			if got[token] != n || !bytes.Contains(b, []byte(`"`+token.String()+`":`)) {
				t.Errorf("%v is %s and read as %v", want, b, got)
			}
		}
	})
}

func TestTextsSortAsTheirTokensDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyToken(t, "a"), anyToken(t, "b")
		if len(a.Text()) != 19 || strings.Compare(a.Text(), b.Text()) != cmp.Compare(a, b) {
			t.Errorf("%d and %d have the texts %q and %q", a, b, a.Text(), b.Text())
		}
	})
	if none, least := lease.Token(-1).Text(), lease.Token(0).Text(); none >= least {
		t.Errorf("%q is not below %q", none, least)
	}
}

// What a program that rounds has written must not pass for a token.
func TestWhatIsNoExactTokenIsRefusedByName(t *testing.T) {
	for _, data := range []string{
		`1.0e17`, `104066655287758849.0`, `1e3`, `-1`, `-0`, `9223372036854775808`, `true`, `{}`, `[1]`, `""`, `" 1"`,
		`"+1"`, `"-1"`, `"1e3"`, `"0x1f"`, `"1_000"`, `"9223372036854775808"`, `"१"`,
	} {
		token := lease.Token(7)
		err := json.Unmarshal([]byte(data), &token)
		if err == nil || token != 7 || !strings.Contains(err.Error(), strings.Trim(data, `"`)) {
			t.Errorf("%s is read as %d: %v", data, token, err)
		}
	}
	for _, src := range []any{nil, int64(-1), "", "1.5", []byte("-3"), 1.04e17, true} {
		token := lease.Token(7)
		if err := token.Scan(src); err == nil || token != 7 {
			t.Errorf("%v (%T) is scanned as %d", src, src, token)
		}
	}
}

func TestNullInJSONChangesNoToken(t *testing.T) {
	token := lease.Token(7)
	if err := json.Unmarshal([]byte("null"), &token); err != nil || token != 7 {
		t.Errorf("null is read as %d, %v", token, err)
	}
	var record struct {
		Token lease.Token `json:",omitempty"`
	}
	if b, err := json.Marshal(record); string(b) != "{}" || err != nil {
		t.Errorf("without a token it is %s, %v", b, err)
	}
}

func TestALogHasATokenAsText(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "token", lease.Token(104066655287758849))
	if !strings.Contains(out.String(), `"token":"104066655287758849"`) {
		t.Errorf("logged: %s", out.String())
	}
}
