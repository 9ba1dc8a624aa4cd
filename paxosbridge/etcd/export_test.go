package etcd

import "time"

// LastCounter is an option: tokens run out there.
func LastCounter(n int64) Option { return func(c *Cluster) { c.last = n } }

// Silence is an option: how long a watch may say nothing.
func Silence(d time.Duration) Option { return func(c *Cluster) { c.silence = d } }

// SecondsFor is how long the etcd lease lasts that a lock of this TTL is put under.
var SecondsFor = secondsFor

// Judge names the class of an error.
func Judge(err error, left bool) string {
	return []string{"refused", "passing", "unknown"}[judge(err, left)]
}
