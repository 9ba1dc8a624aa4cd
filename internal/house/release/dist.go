package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// platforms are those of the binaries. On Windows the command has no run, because it cannot end a
// group of processes there as it must.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// dist builds the command from the release for each platform, with the version in it and without C,
// and writes the binaries and their checksums into a folder.
func (r *release) dist(ctx context.Context, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, platform := range platforms {
		err := step("build rowlock for "+platform, func() error {
			name, sum, err := r.build(ctx, into, platform)
			fmt.Fprintf(&sums, "%x  %s\n", sum, name)
			return err
		})
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(into, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func (r *release) build(ctx context.Context, into, platform string) (name string, sum [sha256.Size]byte, err error) {
	system, processor, _ := strings.Cut(platform, "/")
	suffix := ""
	if system == "windows" {
		suffix = ".exe"
	}
	name = fmt.Sprintf("rowlock_%s_%s_%s%s", r.version, system, processor, suffix)
	// go install has no -o, and go build no @version: it is installed into a GOPATH of its own, where
	// binaries for other systems than this one have a folder.
	folder, err := os.MkdirTemp("", "rowlock-dist-")
	if err != nil {
		return name, sum, err
	}
	defer os.RemoveAll(folder)
	_, err = r.command(ctx, folder, "env", "-u", "GOBIN", "GOPATH="+folder, "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor,
		"GOFLAGS=-trimpath", "go", "install", "-ldflags=-s -w", figures.Module+"/cmd/rowlock@"+r.version)
	if err != nil {
		return name, sum, err
	}
	found, err := filepath.Glob(filepath.Join(folder, "bin", "*", "rowlock"+suffix))
	if here, _ := filepath.Glob(filepath.Join(folder, "bin", "rowlock"+suffix)); len(found) == 0 {
		found = here
	}
	if err != nil || len(found) != 1 {
		return name, sum, fmt.Errorf("go install has made %q: %w", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return name, sum, err
	}
	return name, sha256.Sum256(text), os.WriteFile(filepath.Join(into, name), text, 0o755)
}
