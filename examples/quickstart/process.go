package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

// process is a worker as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	close  func() error
	out    chan message
	stderr bytes.Buffer
}

// start starts this very program once more, as a worker. It ends with ctx at the latest.
func start(ctx context.Context, j job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, workerCommand), out: make(chan message)}
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.close = json.NewEncoder(stdin), stdin.Close
	go p.listen(stdout)
	return p, p.in.Encode(j)
}

// startReady starts a worker for each job and waits until every one is ready to begin.
func startReady(ctx context.Context, jobs ...job) (all []*process, err error) {
	for _, j := range jobs {
		p, err := start(ctx, j)
		if p != nil {
			all = append(all, p)
		}
		if err != nil {
			return all, err
		}
	}
	for _, p := range all {
		if _, err := p.expect(ctx, "ready"); err != nil {
			return all, err
		}
	}
	return all, nil
}

// listen passes on the worker's lines until it has ended.
func (p *process) listen(stdout io.Reader) {
	defer close(p.out)
	lines := json.NewDecoder(stdout)
	for {
		var m message
		if lines.Decode(&m) != nil {
			return
		}
		p.out <- m
	}
}

func (p *process) tell(event string) error { return p.in.Encode(message{Event: event}) }

// expect returns the worker's next line, which must be about one of these events.
func (p *process) expect(ctx context.Context, events ...string) (message, error) {
	select {
	case <-ctx.Done():
		return message{}, fmt.Errorf("waiting for process %d to say %q: %w", p.cmd.Process.Pid, events, context.Cause(ctx))
	case m, ok := <-p.out:
		if ok && slices.Contains(events, m.Event) {
			return m, nil
		}
		if ctx.Err() != nil {
			return m, context.Cause(ctx) // it was killed because of that
		}
		if !ok {
			m = message{Event: "nothing more"}
		}
		return m, fmt.Errorf("process %d was to say %q, but said %q: %s", p.cmd.Process.Pid, events, m.Event, m.Error)
	}
}

// endAll waits for the workers to end by themselves, or ends them if something went wrong: one may
// be stopped.
func endAll(all []*process, err error) error {
	for _, p := range all {
		if err != nil {
			_ = p.cmd.Process.Kill()
		}
		_ = p.close()
		for range p.out { // the pipe must be read to its end before Wait
		}
		failed := p.cmd.Wait()
		if err == nil && failed != nil {
			err = fmt.Errorf("process %d: %w", p.cmd.Process.Pid, failed)
		}
		if err != nil && p.stderr.Len() > 0 {
			err = fmt.Errorf("%w\nprocess %d logged: %s", err, p.cmd.Process.Pid, p.stderr.String())
		}
	}
	return err
}
