// Package wait tests waiters of several processes on one key: their order, what they cost, how soon
// they are woken, and what they leave when they give up.
package wait
