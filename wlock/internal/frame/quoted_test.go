package frame

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestBareNumbersAreQuotedWhereAKeyStands(t *testing.T) {
	for text, want := range map[string]string{
		`{1:{"a":2},34:[5,6]}`:      `{"1":{"a":2},"34":[5,6]}`,
		`{"{1:":"\",2:","b":[7,8]}`: `{"{1:":"\",2:","b":[7,8]}`,
		`{"1":2}`:                   `{"1":2}`,
		`{12`:                       `{12`,
		`"\`:                        `"\`,
	} {
		if got := string(Quoted([]byte(text))); got != want {
			t.Errorf("%s is quoted as %s, want %s", text, got, want)
		}
	}
}

// FuzzQuoted wants what is JSON already to stay as it is.
func FuzzQuoted(f *testing.F) {
	f.Add([]byte(`{"allNodeMap":{1:{"ip":"10.0.0.1","port":40000}},"groupNodeList":[{"groupId":0}]}`))
	f.Add([]byte(`{"a\\":["1:",{"2":3}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := Quoted(text); json.Valid(text) && !bytes.Equal(got, text) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
