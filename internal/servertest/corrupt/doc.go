// Package corrupt tests rows that rowlock cannot have written: edited by hand, by a broken program,
// or restored in part.
package corrupt
