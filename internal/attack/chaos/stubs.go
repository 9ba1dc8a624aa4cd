//go:build linux

package main

var adminFaults, clockFaults, standbyFaults, diskFaults []*fault

func (s *summary) markdown() string { return "" }
