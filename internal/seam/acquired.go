package seam

import "github.com/rowlockdb/rowlock/lease"

// acquired is Each for requests that may be granted. Beside an error an answer's other fields mean
// nothing, so that none of them gets past here: a grant and an error never travel together.
func acquired(what string, answers []lease.Acquired, err error, items int) []lease.Acquired {
	failed := func(err error) lease.Acquired { return lease.Acquired{Err: err} }
	answers = Each(what, answers, err, items, failed)
	for i, a := range answers {
		if a.Err != nil {
			answers[i] = failed(a.Err)
		}
	}
	return answers
}
