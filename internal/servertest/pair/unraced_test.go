//go:build !race

package pair

const raced = false
