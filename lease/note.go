package lease

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxNote is the longest note of a caller in bytes.
	MaxNote = 255
	// MaxIdentity is the longest identity of a client in bytes.
	MaxIdentity = 128
	// MaxStoredNote is the longest text in bytes that a store must keep beside a lease.
	MaxStoredNote = MaxIdentity + 1 + MaxNote
)

const separators = "\t\v"

// StoredNote returns the text that a client has a store keep beside a lease: the identity, a tab,
// and the note. The tab is there if the note is empty, too. Without an identity it is the note
// alone. The identity has no tab and no vertical tab; [SplitNote] then returns what StoredNote was
// given.
func StoredNote(identity, note string) string {
	if identity == "" && !strings.ContainsAny(note, separators) {
		return note
	}
	return identity + "\t" + note
}

// LapsingNote is StoredNote, with a vertical tab, of a lease that its holder will leave to run out
// when its work is done, as rowlock.MinHold has it. That it has run out does not say that its
// holder has died, and a store may expect to find it so.
func LapsingNote(identity, note string) string { return identity + "\v" + note }

// Lapses reports whether stored is a LapsingNote.
func Lapses(stored string) bool {
	i := strings.IndexAny(stored, separators)
	return i >= 0 && stored[i] == '\v'
}

// SplitNote takes apart what StoredNote or LapsingNote has made. A text without a tab is a note
// without an identity: of a program that uses the store itself, or that writes the table by hand.
//
// Both are shown as they were found. Any program that may write the table chose them: they identify
// a holder to an operator and prove nothing. Quote them in a log, as [Describe] does.
func SplitNote(stored string) (identity, note string) {
	if i := strings.IndexAny(stored, separators); i >= 0 {
		return stored[:i], stored[i+1:]
	}
	return "", stored
}

// Describe names a holder in one line: web-1/4711/orders (nightly import). It returns "" if both
// texts are empty. It quotes a text as Go does if the text could be read as more than a name or a
// note: if it has control characters, quotes, brackets, or characters that do not show. It cuts
// what is longer than a client writes.
func Describe(identity, note string) string {
	identity, note = cut(identity, MaxIdentity), cut(note, MaxNote)
	switch {
	case identity == "" && note == "":
		return ""
	case identity == "":
		return strconv.Quote(note)
	}
	if !isPlain(identity) || strings.Contains(identity, " ") {
		identity = strconv.Quote(identity)
	}
	switch {
	case note == "":
		return identity
	case !isPlain(note):
		note = strconv.Quote(note)
	}
	return identity + " (" + note + ")"
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// isPlain reports whether s reads as one text without quotes around it.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !strconv.IsPrint(r) || r == utf8.RuneError || strings.ContainsRune("\"\\()", r)
	})
}
