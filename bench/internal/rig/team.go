package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// WorkerCommand is the first argument of a process that Start has started.
const WorkerCommand = "worker"

// Worker is a process that contends, as its parent sees it. The two speak JSON.
type Worker struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	in     *json.Encoder
	out    *json.Decoder
	stderr bytes.Buffer
}

// start starts this very program once more. It ends with ctx at the latest.
func start(ctx context.Context, job any) (*Worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Worker{cmd: exec.CommandContext(ctx, self, WorkerCommand)}
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
	return p, p.in.Encode(job)
}

// end lets the worker end by itself.
func (p *Worker) end() error {
	_ = p.stdin.Close()
	err := p.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("process %d: %w: %s", p.cmd.Process.Pid, err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return err
}

// Team is all workers.
type Team []*Worker

// StartTeam starts this very program n times more, with WorkerCommand, and tells each its job. They end with ctx at the latest. The team
// that it returns beside an error is to be ended too.
func StartTeam(ctx context.Context, n int, job any) (Team, error) {
	var t Team
	for range n {
		p, err := start(ctx, job)
		if p != nil && p.cmd.Process != nil {
			t = append(t, p)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// Tell says something to all workers.
func (t Team) Tell(what any) error { return t.TellEach(func(int) any { return what }) }

// TellEach says to each worker what is for it.
func (t Team) TellEach(what func(i int) any) error {
	for i, p := range t {
		if err := p.in.Encode(what(i)); err != nil {
			return err
		}
	}
	return nil
}

// Hear reads what each worker answers into that which into(i) points to.
func (t Team) Hear(into func(i int) any) error {
	for i, p := range t {
		if err := p.out.Decode(into(i)); err != nil {
			return fmt.Errorf("process %d does not answer: %w", p.cmd.Process.Pid, err)
		}
	}
	return nil
}

// End lets the workers end by themselves, and says which failed.
func (t Team) End() error {
	var errs []error
	for _, p := range t {
		errs = append(errs, p.end())
	}
	return errors.Join(errs...)
}
