// Package lease stands in for the real one.
package lease

type Token int64

type Record struct {
	Key   string
	Token Token
}
