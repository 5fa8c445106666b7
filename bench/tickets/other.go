//go:build !linux

// Command tickets holds decisions with tickets beside those of a central room. It reads
// processor times where only Linux tells them.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "tickets: this runs on Linux only")
	os.Exit(1)
}
