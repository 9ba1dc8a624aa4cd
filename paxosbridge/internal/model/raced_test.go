//go:build race

package model

// raced says that the race detector is on. It makes an exploration ten times slower.
const raced = true
