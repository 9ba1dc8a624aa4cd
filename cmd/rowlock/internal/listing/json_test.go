package listing

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// What any program can store in a note or a name, it could do to an operator's terminal.
func TestJSONHasNothingThatATerminalObeys(t *testing.T) {
	for _, text := range []string{
		"\x1b]0;title\x07", "\u009b31m", "\u0085", "\x7f", "a\u202eb", "\u2066x\u2069", "\u200f", "\u2028",
		"\ufeff", "\U000e0041", "tab\there", "back\\slash \\u202e", "Ä 日本 👍 <&>", "\r\n", "\x00",
	} {
		name := filepath.Join(t.TempDir(), "out")
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		o := new(Output)
		err = o.Open(file, "json")
		if err == nil {
			err = o.JSON(map[string]string{"note": text, text: "a key"})
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		out, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(out[:len(out)-1]) {
			if !strconv.IsPrint(r) {
				t.Errorf("%q is printed as %q", text, out)
			}
		}
		var back map[string]string
		if err := json.Unmarshal(out, &back); err != nil || back["note"] != text || back[text] != "a key" {
			t.Errorf("%q is read back as %q (%v)", text, back, err)
		}
	}
}
