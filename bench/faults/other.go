//go:build !linux

// Command faults hurts meshes of real processes. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "faults: namespaces, signals and clocks as used here need Linux")
	os.Exit(1)
}
