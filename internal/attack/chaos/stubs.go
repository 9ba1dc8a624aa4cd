//go:build linux

package main

func (s *summary) markdown() string { return "" }
