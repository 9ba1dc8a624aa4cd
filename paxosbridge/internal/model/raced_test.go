//go:build race

package model

// raced says that the race detector looks on, with which an exploration takes ten times as long.
const raced = true
