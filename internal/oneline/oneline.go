// Package oneline joins errors as errors.Join does, in one line: most log collectors split an error
// that has a line break.
package oneline

import "strings"

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

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes errors.Is and errors.As find each.
func (j joined) Unwrap() []error { return j }
