//go:build !linux

package rate

import (
	"context"
	"errors"
)

// Run returns an error.
func Run(context.Context, Config) (Result, error) {
	return Result{}, errors.New("this runs on Linux only: it needs epoll")
}
