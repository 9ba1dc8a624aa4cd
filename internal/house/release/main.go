// Release makes the release of a version in a copy of the last commit, and tries it as a stranger
// would, from a module proxy of its own and an empty module cache:
//
//	go run ./internal/house/release VERSION
//	go run ./internal/house/release -only first VERSION
//	go run ./internal/house/release -dist FOLDER VERSION
//	go run ./internal/house/release -write VERSION
//
// It prints what it has tried and, in the end, the tags in their order. With -only it tries what
// has that name in try.go alone: the figure of first is one of an idle machine. With -dist it
// builds the command for each platform instead, and with -write it makes the release in the working
// tree, for the release's commit; both try nothing. RELEASING.md says when to do what.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	write := flag.Bool("write", false, "make the release in the working tree, and try nothing")
	dist := flag.String("dist", "", "build the command's binaries into this folder, and try nothing")
	only := flag.String("only", "", "try what has this name in try.go, and nothing else")
	flag.Parse()
	if err := run(ctx, flag.Arg(0), *only, *write, *dist); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var version = regexp.MustCompile(`^v[01]\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func run(ctx context.Context, v, only string, write bool, dist string) (err error) {
	if !version.MatchString(v) {
		return fmt.Errorf("%q is no version: say one as v0.9.0; from v2 on a module's path has the version in it", v)
	}
	folder, err := os.MkdirTemp("", "rowlock-release-")
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, remove(folder)) }()
	r := &release{version: v, tree: ".", proxy: filepath.Join(folder, "proxy"), cache: filepath.Join(folder, "modules")}
	r.only, r.busy = only, load()
	if !write {
		r.tree = filepath.Join(folder, "tree")
		if err := copied(ctx, r.tree); err != nil {
			return err
		}
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	switch {
	case write:
		fmt.Println("made in the working tree: look at git diff, and commit it")
	case dist != "":
		return r.dist(ctx, dist)
	default:
		if err := r.try(ctx, filepath.Join(folder, "stranger")); err != nil {
			return err
		}
	}
	fmt.Println("tags, in this order:")
	for _, m := range modules {
		fmt.Println("  " + path.Join(m, v))
	}
	return nil
}

// copied has the last commit's files in a folder.
func copied(ctx context.Context, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	archive := exec.CommandContext(ctx, "git", "archive", "--format=tar", "HEAD")
	extract := exec.CommandContext(ctx, "tar", "-x", "-C", into)
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	extract.Stdin, archive.Stderr, extract.Stderr = pipe, os.Stderr, os.Stderr
	if err := extract.Start(); err != nil {
		return err
	}
	return errors.Join(archive.Run(), extract.Wait())
}

// remove removes a module cache too, whose files are read-only.
func remove(folder string) error {
	_ = filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o755)
		}
		return nil
	})
	return os.RemoveAll(folder)
}

// step says what is done, and how long it took.
func step(what string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Printf("%-72s %5.1f s\n", what, time.Since(began).Seconds())
	return nil
}

// command runs one in a folder, and returns what it says.
func (r *release) command(ctx context.Context, folder, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), r.environment()...)
	var said, failed strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &failed
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, said.String(), failed.String())
	}
	return said.String(), nil
}
