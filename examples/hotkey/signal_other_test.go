//go:build !unix

package main

import (
	"errors"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func interruptGroup(int) error { return errors.ErrUnsupported }
