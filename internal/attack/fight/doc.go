//go:build linux

// Package fight is what an attack is made of: worker processes and what they do to one another's
// locks, a plan for them that a seed decides, and the program of make attack. The programs beside
// it use the same.
package fight
