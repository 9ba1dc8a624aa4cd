// Package oneline joins errors in one line, because most log collectors tear an error with a line
// break apart.
package oneline

import "strings"

// several is what errors.Join returns, in one line.
type several []error

// Join returns the errors that are not nil as one, or nil.
func Join(errs ...error) error {
	var all several
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

func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes errors.Is and errors.As find each.
func (s several) Unwrap() []error { return s }
