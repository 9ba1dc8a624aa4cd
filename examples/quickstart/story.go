package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/examples/internal/command"
)

// story prints, and remembers which promises were broken.
type story struct {
	w      io.Writer
	colour bool
	broken []string
}

func newStory(f *os.File) *story {
	return &story{w: f, colour: command.IsTerminal(f) && os.Getenv("NO_COLOR") == ""}
}

const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
	blue  = "36"
)

func (s *story) paint(style, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (s *story) line(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

func (s *story) title(text string) { s.line("\n%s", s.paint(bold, text)) }

// check says whether a promise of rowlock was kept.
func (s *story) check(kept bool, promise, found string) {
	if kept {
		s.line("   %s %s: %s", s.paint(green, "✓"), promise, found)
		return
	}
	s.broken = append(s.broken, promise+": "+found)
	s.line("   %s", s.paint(red, "✗ PROMISE BROKEN: "+promise+": "+found))
}

// loss shows what goes wrong where rowlock has promised nothing.
func (s *story) loss(found string) { s.line("   %s %s", s.paint(red, "✗"), found) }

// end returns an error if any promise was broken.
func (s *story) end(took time.Duration) error {
	if len(s.broken) > 0 {
		return fmt.Errorf("promise broken: %s", strings.Join(s.broken, "; "))
	}
	s.line("\n%s (%.1f s)", s.paint(bold, "All promises kept."), took.Seconds())
	return nil
}
