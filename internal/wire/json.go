package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// JSON writes a vector of what is printed for programs: a JSON value, or some, one after the other.
// What differs from run to run is replaced: times, owners, tokens, measured numbers, and the values
// of the names in varies. It fails the test if a program that keeps numbers as doubles could not
// read it.
func (f *File) JSON(tb TB, name, text string, varies ...string) {
	tb.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for dec.More() {
		var v any
		if err := dec.Decode(&v); err != nil {
			tb.Fatal(fmt.Sprintf("%s is no JSON: %v: %s", name, err, text))
		}
		for _, complaint := range rounded(name, v) {
			tb.Errorf("%s: as a number a token is rounded: %s", complaint, Promise(tb, "a token:"))
		}
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(masked("", v, varies)); err != nil {
			tb.Fatal(err)
		}
		f.Add(name, "%s", strings.TrimSpace(line.String()))
	}
}

// rounded returns where a value has a number that no double holds, or a token that is no string.
func rounded(path string, v any) (found []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if _, text := v[name].(string); isToken(name) && !text {
				found = append(found, fmt.Sprintf("%s.%s is %v", path, name, v[name]))
			}
			found = append(found, rounded(path+"."+name, v[name])...)
		}
	case []any:
		for i, e := range v {
			found = append(found, rounded(fmt.Sprintf("%s[%d]", path, i), e)...)
		}
	case json.Number:
		if n, err := strconv.ParseFloat(v.String(), 64); err != nil || n >= 1<<53 || n <= -1<<53 {
			found = append(found, fmt.Sprintf("%s is %v", path, v))
		}
	}
	return found
}

// isToken reports whether a name is a token's: "token", "rowlock.token", "tokens_above" or
// "raised_to".
func isToken(name string) bool {
	return strings.HasPrefix(name[strings.LastIndex(name, ".")+1:], "token") || name == "raised_to"
}

// masked is a value without what differs from run to run.
func masked(name string, v any, varies []string) any {
	switch v := v.(type) {
	case map[string]any:
		for n, e := range v {
			v[n] = masked(n, e, varies)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = masked(name, e, varies)
		}
		return v
	case string:
		if text := "<" + name + ">"; name == "time" || name == "at" || name == "owner" || isToken(name) ||
			slices.Contains(varies, name) {
			return text
		}
	case json.Number:
		if strings.HasSuffix(name, "_seconds") || slices.Contains(varies, name) {
			return 0.5
		}
	}
	return v
}
