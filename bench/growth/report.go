package main

import (
	"fmt"
	"io"
)

// report prints the page, and writes it where it is wanted.
func report(w io.Writer, s settings, all *figures) error {
	if s.out == "" {
		fmt.Fprintln(w, pageOf(s, all))
		return nil
	}
	if err := all.write(s.out); err != nil {
		return err
	}
	return publish(s, all)
}
