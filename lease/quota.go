package lease

import (
	"errors"
	"fmt"
)

// ErrQuota is what a [*QuotaError] is: a namespace is at its limit.
var ErrQuota = errors.New("rowlock: quota")

// QuotaError says which limit of a namespace a call would have exceeded. Nothing was sent.
type QuotaError struct {
	Namespace string
	// What is limited: "held", the locks that are held or being taken, or "waiting", the calls of
	// Lock that have not returned.
	What  string
	Limit int
	// Asked is for how many more the call has asked.
	Asked int
}

func (e *QuotaError) Error() string {
	more := "another"
	if e.Asked > 1 {
		more = fmt.Sprintf("%d more", e.Asked)
	}
	if e.What == "waiting" {
		return fmt.Sprintf("%v: namespace %q has %d calls waiting for locks, and may not have %s: try "+
			"again later, or raise Quota.Waiting", ErrQuota, e.Namespace, e.Limit, more)
	}
	return fmt.Sprintf("%v: namespace %q may hold %d locks, and has no room for %s: unlock some, or "+
		"raise Quota.Held", ErrQuota, e.Namespace, e.Limit, more)
}

// Unwrap returns ErrQuota.
func (e *QuotaError) Unwrap() error { return ErrQuota }
