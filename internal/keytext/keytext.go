// Package keytext shows keys and errors as text, and reads keys back.
//
// A key is any bytes. Text that prints stays as it is; a backslash becomes \\, and each byte of
// anything else becomes \x and two hexadecimal digits. So a key on a screen cannot move the cursor,
// hide or pass for another, and what was shown can be typed.
package keytext

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/lease"
)

// Show returns key as text.
func Show(key string) string {
	var b strings.Builder
	for i := 0; i < len(key); {
		r, n := utf8.DecodeRuneInString(key[i:])
		switch edge := i == 0 || i+n == len(key); {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && n <= 1, !strconv.IsPrint(r), r == ' ' && edge:
			for _, c := range []byte(key[i : i+n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteString(key[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Read returns the key that text shows. Its error wraps lease.ErrInvalidKey and says how to write
// the key.
func Read(text string) (string, error) {
	key, err := unescape(text)
	if err != nil {
		return "", err
	}
	return key, lease.CheckStoredKey(key)
}

// Prefix is Read for the beginning of keys, which may be empty.
func Prefix(text string) (string, error) { return unescape(text) }

func unescape(text string) (string, error) {
	var b strings.Builder
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, `\`)
		b.WriteString(before)
		if !found {
			break
		}
		n, err := escape(&b, after)
		if err != nil {
			return "", fmt.Errorf(`%w: %q: write a backslash as \\, and any byte as \x and two `+
				`hexadecimal digits`, lease.ErrInvalidKey, text)
		}
		rest = after[n:]
	}
	return b.String(), nil
}

// escape writes what stands after a backslash, and returns its length.
func escape(b *strings.Builder, after string) (int, error) {
	if strings.HasPrefix(after, `\`) {
		b.WriteByte('\\')
		return 1, nil
	}
	if len(after) < 3 || after[0] != 'x' {
		return 0, hex.ErrLength
	}
	c, err := hex.DecodeString(after[1:3])
	if err == nil {
		b.Write(c)
	}
	return 3, err
}

// Error is an error in one line. What a driver says of each address that it has tried, or of one
// with TLS and without, is said once.
func Error(err error) string {
	var said []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
