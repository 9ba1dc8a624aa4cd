// Package section tests DoTx on every database.
package section
