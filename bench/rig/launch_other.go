//go:build !linux

package rig

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// launch starts cmd, and calls wait beside it. Ctrl-C reaches the program together with us.
func launch(cmd *exec.Cmd, namespace string, wait func()) error {
	if namespace != "" {
		return errors.New("network namespaces need Linux")
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go wait()
	return nil
}

// EndTogether has cmd end when its context is done.
func EndTogether(*exec.Cmd) {}

// signal signals the program. Where there is no such signal it ends it.
func signal(p *os.Process, s syscall.Signal) error {
	if err := p.Signal(s); err != nil {
		return p.Kill()
	}
	return nil
}

func processClock(int) (time.Duration, error) {
	return 0, errors.New("processor time is read on Linux only")
}

// OwnThread is not known here.
func OwnThread() time.Duration { return 0 }
