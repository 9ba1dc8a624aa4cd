//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

var diskFaults = []*fault{
	{
		name: "disk-full", what: "the disk full for up to two TTLs, and with it a server that fails or waits", alone: true, able: noMount,
		before: func(ctx context.Context, r *round) error { return r.smallDisk(ctx) },
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			return again(ctx, rng, ttl/3, func() error { return r.fill(ctx, rng) })
		},
	},
}

// diskSize is that of a small disk, which a server's data fit in.
const diskSize = "400m"

func noMount() string {
	folder, err := os.MkdirTemp("", "rowlock-chaos-mount-")
	if err != nil {
		return err.Error()
	}
	defer os.Remove(folder)
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		return fmt.Sprintf("MAY NOT MOUNT A FILE SYSTEM (%v): run as root", err)
	}
	_ = unix.Unmount(folder, unix.MNT_DETACH)
	return ""
}

// smallDisk gives the round a server of its own on a file system that can be filled.
func (r *round) smallDisk(ctx context.Context) error {
	folder := fmt.Sprintf("%s-disk-%d", r.server.folder, r.number)
	path := r.server.outside(folder)
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	r.later(func(context.Context) error { return os.RemoveAll(path) })
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size="+diskSize+",mode=777"); err != nil {
		return err
	}
	r.later(func(context.Context) error { return unix.Unmount(path, unix.MNT_DETACH) })
	s, err := newServer(ctx, r.server.engine, filepath.Join(folder, "server"))
	if err != nil {
		return err
	}
	r.later(func(context.Context) error { return s.end() })
	r.server = s
	for _, p := range r.proxies {
		p.Retarget(s.address())
	}
	if err := r.database.Create(ctx, s.db); err != nil {
		return err
	}
	return r.database.Counters(ctx, s.db, planKeys())
}

// fill takes the space that is left, ends that, and starts the server again if it has ended.
func (r *round) fill(ctx context.Context, rng *rand.Rand) error {
	r.blows.note("disk full")
	path := r.server.outside(filepath.Join(filepath.Dir(r.server.folder), "filler"))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<16)
	for err == nil {
		_, err = f.Write(block)
	}
	for end := fight.Now() + int64(between(rng, ttl/2, 2*ttl)); fight.Now() < end && ctx.Err() == nil; {
		_, _ = f.Write(block[:1<<12]) // what the server frees is taken too
		fight.Sleep(ctx, look)
	}
	_ = f.Close()
	if err := os.Remove(path); err != nil {
		return err
	}
	if r.server.name == "mysql" { // it looks for space once a minute
		r.server.kill()
	}
	return r.server.start(context.WithoutCancel(ctx))
}
