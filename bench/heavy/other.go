//go:build !linux

// Command heavy loads a real node with what wears proxies out. It reads memory
// and time of the node where only Linux tells them.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "heavy: this runs on Linux only")
	os.Exit(1)
}
