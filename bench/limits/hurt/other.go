//go:build !linux

// Command hurt holds rate limits against faults of real processes. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "hurt: namespaces and signals as used here need Linux")
	os.Exit(1)
}
