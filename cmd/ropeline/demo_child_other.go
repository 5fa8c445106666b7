//go:build !linux

package main

import (
	"os"
	"syscall"
)

// childAttributes returns nothing special: Ctrl-C reaches the children together
// with us, and they end by themselves.
func childAttributes() *syscall.SysProcAttr { return nil }

// signalChild signals the child. Where there is no such signal it ends it.
func signalChild(p *os.Process, sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil {
		return p.Kill()
	}
	return nil
}
