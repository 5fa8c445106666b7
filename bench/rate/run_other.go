//go:build !linux

package rate

import "context"

// Run returns [ErrLinux].
func Run(context.Context, Config) (Result, error) { return Result{}, ErrLinux }

// CPUs returns none: nothing can be kept on one.
func CPUs() []int { return nil }
