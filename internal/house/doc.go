// Package house tests the repository as a whole: its imports and modules, its public API, and the
// code and links in its pages.
package house
