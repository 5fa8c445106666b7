package main

import (
	"os"
	"syscall"
)

// childAttributes puts a child into a process group of its own, so that Ctrl-C
// reaches only us and we end the children in order; and lets the kernel end it
// when we are gone without having been able to.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// signalChild signals the child and whatever it may have started itself.
func signalChild(p *os.Process, sig syscall.Signal) error {
	return syscall.Kill(-p.Pid, sig)
}
