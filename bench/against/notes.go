package main

import _ "embed"

// notes are what the figures do not say.
//
//go:embed notes.md
var notes string
