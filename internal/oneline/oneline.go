// Package oneline joins errors as errors.Join does, in one line: most log collectors split an error
// that has a line break. And it tells whether an error is one of several.
package oneline

import (
	"errors"
	"slices"
	"strings"
)

// Is reports whether err is one of these.
func Is(err error, these ...error) bool {
	return slices.ContainsFunc(these, func(one error) bool { return errors.Is(err, one) })
}

// Join returns the errors that are not nil as one, or nil.
func Join(errs ...error) error {
	var all joined
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

type joined []error

// Error says once what several errors say: that they are ours, and what an error begins with that
// stands before it or after it.
func (j joined) Error() (text string) {
	for _, err := range j {
		switch next := err.Error(); {
		case text == "", strings.HasPrefix(next, text+":"):
			text = next
		case strings.HasPrefix(text+":", next+":"):
		case strings.HasPrefix(text, "rowlock: "):
			text += "; " + strings.TrimPrefix(next, "rowlock: ")
		default:
			text += "; " + next
		}
	}
	return text
}

// Unwrap makes errors.Is and errors.As find each.
func (j joined) Unwrap() []error { return j }
