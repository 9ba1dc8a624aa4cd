package sqlstore

import "fmt"

// Strategy is what an acquire tries first. Both work on the same rows and give the same guarantees,
// so that clients of either kind can share a table.
type Strategy uint8

const (
	// Update tries the row first and creates it if there is none: for keys that are locked
	// again and again.
	Update Strategy = iota
	// Insert creates the row first and looks at it if there is one: for keys that are used
	// once, as an order's.
	Insert
)

// String names the strategy.
func (s Strategy) String() string {
	switch s {
	case Update:
		return "update"
	case Insert:
		return "insert"
	}
	return fmt.Sprintf("strategy(%d)", uint8(s))
}
