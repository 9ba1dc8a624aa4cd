package lease

import (
	"database/sql/driver"
	"fmt"
	"log/slog"
	"strconv"
)

// Token is a fencing token, of up to 19 digits. Most are above 2^53, where a reader that keeps
// numbers as doubles takes successive tokens for one: JavaScript, jq 1.6, Lua, spreadsheets. So it
// is a string in JSON, as text and in logs, and an integer in databases.
type Token int64

// MaxToken is the first token that is never granted. A store refuses with [ErrTokenExhausted] so
// that the number cannot overflow: PostgreSQL and MySQL would fail, and SQLite would go on in
// floating point without an error.
const MaxToken Token = 1<<63 - 1<<20

// String returns the decimal digits.
func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Text returns 19 digits, zeros first: compared byte by byte, texts are in the order of their
// tokens. No token is negative; a negative value's Text begins with "-", and is below all tokens.
func (t Token) Text() string { return fmt.Sprintf("%019d", int64(t)) }

// MarshalText returns String, which also a key of a JSON object is.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads String or Text: decimal digits and nothing else.
func (t *Token) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return fmt.Errorf("rowlock: %.40q is no token: write 0 to %d in decimal digits", text, uint64(1<<63-1))
	}
	*t = Token(n)
	return nil
}

// MarshalJSON returns String in quotes.
func (t Token) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// UnmarshalJSON reads a string as UnmarshalText does, or a number of digits alone: one with a
// fraction or an exponent has passed a program that rounds. null changes nothing.
func (t *Token) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if text, err := strconv.Unquote(string(data)); err == nil {
		data = []byte(text)
	}
	return t.UnmarshalText(data)
}

// Value returns an int64.
func (t Token) Value() (driver.Value, error) { return int64(t), nil }

// Scan takes an integer, or the digits that MySQL sends for one. It refuses NULL, negative numbers,
// and a number of floating point, which may have been rounded.
func (t *Token) Scan(src any) error {
	switch v := src.(type) {
	case int64, string:
		return t.UnmarshalText(fmt.Append(nil, v))
	case []byte:
		return t.UnmarshalText(v)
	}
	return fmt.Errorf("rowlock: %v (%T) is no token: keep tokens in a column of integers", src, src)
}

// LogValue returns String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }
