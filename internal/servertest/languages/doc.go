// Package languages has the tests of the programs in examples/languages: they and Go processes lock
// one key on one database, and programs in other languages compare its tokens. scripts/with-languages
// installs what they need.
package languages
