//go:build !linux

// Command scaling measures what a decision costs by the size of a site. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "scaling: this needs Linux")
	os.Exit(1)
}
