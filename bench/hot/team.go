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

// job is what a worker is told first, task what it is told for each turn.
type job struct{ Database, Source, Prefix string }

type task struct {
	Way             way
	Warm, For, Hold time.Duration
}

// start starts this program once more, as a worker. It ends with ctx at the latest.
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

// prepare has all workers open what they lock with, outside the measured time.
func (t team) prepare(what task) error {
	if err := t.tell(what); err != nil {
		return err
	}
	return t.hear(func(_ int, p *process) error { return p.out.Decode(new(bool)) })
}

// run has all workers contend, and returns their waiting times.
func (t team) run() ([][]int64, error) {
	all := make([][]int64, len(t))
	if err := t.tell(true); err != nil {
		return nil, err
	}
	return all, t.hear(func(i int, p *process) error { return p.out.Decode(&all[i]) })
}

// finish has all workers close what they have locked with.
func (t team) finish() error {
	if err := t.tell(true); err != nil {
		return err
	}
	return t.hear(func(_ int, p *process) error { return p.out.Decode(new(bool)) })
}

func (t team) tell(what any) error {
	for _, p := range t {
		if err := p.in.Encode(what); err != nil {
			return err
		}
	}
	return nil
}

func (t team) hear(answer func(i int, p *process) error) error {
	for i, p := range t {
		if err := answer(i, p); err != nil {
			return fmt.Errorf("process %d does not answer: %w", p.cmd.Process.Pid, err)
		}
	}
	return nil
}

func (t team) end() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, p.end())
	}
	return errors.Join(errs...)
}
