package seam

import (
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// acquired is Each for requests that may be granted. Beside an error an answer's other fields mean
// nothing, so that none of them gets past here: a grant and an error never travel together.
func acquired(what string, answers []lease.Acquired, err error, items int) []lease.Acquired {
	if err != nil || len(answers) != items {
		return slices.Repeat([]lease.Acquired{{Err: Count(what, len(answers), items, err)}}, items)
	}
	for i := range answers {
		if err := answers[i].Err; err != nil {
			answers[i] = lease.Acquired{Err: err}
		}
	}
	return answers
}
