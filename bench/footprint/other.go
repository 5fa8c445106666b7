//go:build !linux

// Command footprint measures what a node takes of memory. It reads that from /proc, and
// so runs on Linux only; its tests run anywhere.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "footprint: this runs on Linux only")
	os.Exit(1)
}
