// Package prose has no code but its tests: they keep lines within 100 columns, and comments in the
// vocabulary of lease/doc.go, in the folders that are clean.
package prose
