//go:build !linux

package main

// dropProgram does nothing: only Linux is known to take the hint without harm.
func dropProgram() error { return nil }
