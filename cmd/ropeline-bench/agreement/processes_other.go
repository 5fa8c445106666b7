//go:build !linux

package agreement

import (
	"context"
	"errors"
	"io"
)

// JudgeProcesses is Judge with processes.
func (s *Set) JudgeProcesses(context.Context, string, io.Writer) (kept bool, err error) {
	return false, errors.New("runs with processes need Linux")
}
