package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// process is a worker as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	in     *json.Encoder
	out    *json.Decoder
	stderr bytes.Buffer
}

// start starts this very program once more, as a worker. It ends with ctx at the latest.
func start(ctx context.Context, j job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, workerCommand)}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.in, p.out = json.NewEncoder(p.stdin), json.NewDecoder(stdout)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.in.Encode(j)
}

// end lets the worker end by itself.
func (p *process) end() error {
	_ = p.stdin.Close()
	err := p.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("process %d: %w: %s", p.cmd.Process.Pid, err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return err
}

// team is all workers.
type team []*process

func startTeam(ctx context.Context, n int, j job) (team, error) {
	var t team
	for range n {
		p, err := start(ctx, j)
		if p != nil && p.cmd.Process != nil {
			t = append(t, p)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// turn has all workers contend for so long.
func (t team) turn(d time.Duration) (all []hold, err error) {
	for _, p := range t {
		if err := p.in.Encode(d); err != nil {
			return nil, err
		}
	}
	for i, p := range t {
		var holds []hold
		if err := p.out.Decode(&holds); err != nil {
			return nil, fmt.Errorf("process %d has nothing to say: %w", p.cmd.Process.Pid, err)
		}
		for _, h := range holds {
			h.worker = i
			all = append(all, h)
		}
	}
	return all, nil
}

func (t team) end() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, p.end())
	}
	return errors.Join(errs...)
}
