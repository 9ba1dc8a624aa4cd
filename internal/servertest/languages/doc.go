// Package languages has the tests of the programs in examples/languages: they and Go processes lock
// one key on one database, and programs in other languages compare its tokens. What they need is
// installed by scripts/with-languages.
package languages
