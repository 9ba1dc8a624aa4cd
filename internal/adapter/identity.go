package adapter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock/lease"
)

// CheckIdentity returns an error that wraps lease.ErrConfig for an identity that is not shown as it
// is.
func CheckIdentity(identity string) error {
	const cure = "leave it empty for host/pid/program"
	switch {
	case len(identity) > lease.MaxIdentity:
		return fmt.Errorf("%w: Identity %.24q… has %d bytes; at most %d are allowed: shorten it, or %s",
			lease.ErrConfig, identity, len(identity), lease.MaxIdentity, cure)
	case !utf8.ValidString(identity) || strings.ContainsFunc(identity, unicode.IsControl):
		return fmt.Errorf("%w: Identity %q must be UTF-8 without control characters: remove them, or %s",
			lease.ErrConfig, identity, cure)
	}
	return nil
}

// DefaultIdentity returns host/pid/program of this process: which process on which machine an
// operator has to look at.
func DefaultIdentity() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	program := "unknown"
	if len(os.Args) > 0 && os.Args[0] != "" {
		program = filepath.Base(os.Args[0])
	}
	return identityOf(host, os.Getpid(), program)
}

// identityOf returns host/pid/program as an identity that passes CheckIdentity, whatever the names
// have in them.
func identityOf(host string, pid int, program string) string {
	all := strings.ToValidUTF8(host+"/"+strconv.Itoa(pid)+"/"+program, "?")
	return CutText(strings.Map(shown, all), lease.MaxIdentity)
}

func shown(r rune) rune {
	if unicode.IsControl(r) {
		return '?'
	}
	return r
}

// CutText returns the first bytes of valid UTF-8, at most so many, and no part of a rune.
func CutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
