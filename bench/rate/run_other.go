//go:build !linux

package rate

import "context"

// Run returns [ErrLinux].
func Run(context.Context, Config) (Result, error) { return Result{}, ErrLinux }
