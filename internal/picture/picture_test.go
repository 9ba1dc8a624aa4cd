package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "write docs/fence.svg instead of comparing with it")

const file = "../../docs/fence.svg"

func TestPictureIsWhatTheProgramDraws(t *testing.T) {
	if *update {
		if err := os.WriteFile(file, draw(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, draw()) {
		t.Errorf("%s is out of date: run go run ./internal/picture in the root", file)
	}
}

// A browser shows no part of an SVG image that is not well-formed.
func TestPictureIsWellFormed(t *testing.T) {
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(kept)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// seen lists each color that must stand out, and the color that it is drawn on.
var seen = []struct{ front, property, back, behind string }{
	{"text", "fill", ".paper", "fill"},
	{"text", "fill", ".a", "fill"},
	{"text", "fill", ".b", "fill"},
	{"text", "fill", ".stopped", "fill"},
	{".no", "fill", ".paper", "fill"},
	{".yes", "fill", ".paper", "fill"},
	{".sign", "stroke", ".no", "fill"},
	{".sign", "stroke", ".yes", "fill"},
	{".solid", "fill", ".stopped", "fill"},
	{".line", "stroke", ".paper", "fill"},
	{".a", "stroke", ".paper", "fill"},
	{".b", "stroke", ".paper", "fill"},
}

func TestPictureHasContrast(t *testing.T) {
	for _, s := range seen {
		front, back := find(t, s.front, s.property), find(t, s.back, s.behind)
		if c := contrast(t, front.light, back.light); c < 4.5 {
			t.Errorf("light: %s on %s has a contrast of %.2f; 4.5 is needed", s.front, s.back, c)
		}
		if c := contrast(t, front.dark, back.dark); c < 4.5 {
			t.Errorf("dark: %s on %s has a contrast of %.2f; 4.5 is needed", s.front, s.back, c)
		}
	}
}

func find(t *testing.T, class, property string) paint {
	t.Helper()
	for _, p := range paints {
		if p.class == class && p.property == property {
			return p
		}
	}
	t.Fatalf("paints have no %s of %s", property, class)
	return paint{}
}

// contrast is the ratio that WCAG 2 defines.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, color string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(color[1:], 16, 24)
	if err != nil {
		t.Fatal(err)
	}
	return 0.2126*linear(rgb>>16) + 0.7152*linear(rgb>>8&255) + 0.0722*linear(rgb&255)
}

func linear(channel uint64) float64 {
	c := float64(channel) / 255
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}
