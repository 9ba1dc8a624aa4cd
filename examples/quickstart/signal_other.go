//go:build !unix

package main

import "errors"

// canStop is false where there is no SIGSTOP, as on Windows.
const canStop = false

func (p *process) stop() error { return errors.ErrUnsupported }

func (p *process) wake() error { return errors.ErrUnsupported }
