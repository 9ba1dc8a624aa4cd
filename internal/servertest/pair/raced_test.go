//go:build race

package pair

// raced: the race detector has pools forget what was put into them, now and then.
const raced = true
