package etcd

import "time"

// LastCounter is an option: the last counter of a token.
func LastCounter(n int64) Option { return func(c *Cluster) { c.last = n } }

// Silence is an option: how long a watch may be silent.
func Silence(d time.Duration) Option { return func(c *Cluster) { c.silence = d } }

// SecondsFor is how long the etcd lease of a lock with this TTL lasts.
var SecondsFor = secondsFor

// Judge names the class of an error.
func Judge(err error, left bool) string {
	return []string{"refused", "passing", "unknown"}[judge(err, left)]
}
