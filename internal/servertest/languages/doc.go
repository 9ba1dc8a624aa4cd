// Package languages has the tests of the programs in examples/languages: they and Go processes lock
// one key on one database. scripts/with-languages installs what the programs need.
package languages
