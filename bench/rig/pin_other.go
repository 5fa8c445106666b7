//go:build !linux

package rig

import "errors"

// Pin keeps this process on cores. Without cores it does nothing; it works on Linux only.
func Pin(cores ...int) (restore func(), err error) {
	if len(cores) == 0 {
		return func() {}, nil
	}
	return nil, errors.New("processes are kept on cores on Linux only")
}
